"""The manifests of packaging/kubeflow, as far as one machine without a cluster can check them.

Promises   each is taken by the models that Kubeflow's Trainer and JobSet are published with, and
           none of its fields is unknown to them; the Job within is valid by the schemas of
           Kubernetes; names, ports, numbers and exit codes agree, also with the launcher's.
Does not   start a pod.
"""
import re
import unittest

import checks

GIVEN = checks.arguments(python={"default": ""})
KEELRUN = GIVEN.build / "bin/keelrun"
SCHEMAS = ("1.31", "1.37")
# What the torch policy of Kubeflow's Trainer sets for a job of this name and size.
TRAINER_PORT = 29500
MODELS = {"JobSet": "JobsetV1alpha2JobSet", "TrainJob": "TrainerV1alpha1TrainJob",
          "TrainingRuntime": "TrainerV1alpha1TrainingRuntime"}


def kinds(name):
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise unittest.SkipTest("this Python has no yaml (tools/setup.sh --tests)") from None
    text = (GIVEN.source / "packaging/kubeflow" / name).read_text()
    return {one["kind"]: one for one in yaml.safe_load_all(text) if one}


class Checks:
    """What both files promise. `jobs`: the JobSet's spec; `container`: with its words."""

    def setUp(self):
        self.all = kinds(self.FILE)
        self.jobs = self.jobset()
        self.node, = self.jobs["replicatedJobs"]
        self.job = self.node["template"]["spec"]
        self.pod = self.job["template"]["spec"]
        self.container, = self.pod["containers"]
        command = self.container["command"] + self.arguments()
        self.words = command[command.index("keelrun") + 1:]
        for name, value in self.variables().items():
            self.words = [word.replace(f"$({name})", value) for word in self.words]
        self.options = checks.understood(KEELRUN, self.words)

    def variables(self):
        """What the cluster puts in for $(NAME)."""
        field = self.container["env"][0]["valueFrom"]["fieldRef"]["fieldPath"]
        self.assertEqual(field, "metadata.labels['jobset.sigs.k8s.io/jobset-name']")
        return {"JOBSET": self.name()}

    def test_the_models_take_it(self):
        try:
            from kubeflow_trainer_api import models  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("this Python has no kubeflow_trainer_api (tools/setup.sh --tests)")
        for kind, one in self.all.items():
            if kind in MODELS:
                with self.subTest(kind):
                    model = getattr(models, MODELS[kind])
                    # A field that it does not know would be left out.
                    self.assertEqual(model.from_dict(one).to_dict(), one)
                    wrong = {**one, "spec": {**one["spec"], "netwrk": {}}}
                    self.assertNotEqual(model.from_dict(wrong).to_dict(), wrong)

    def test_the_schemas_of_kubernetes_take_the_job_within(self):
        try:
            import kubernetes_validate  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("this Python has no kubernetes_validate (tools/setup.sh --tests)")
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"},
               "spec": self.job}
        for schema in SCHEMAS:
            for one in (job, self.all["PersistentVolumeClaim"]):
                kubernetes_validate.validate(one, schema, strict=True)
        wrong = {**job, "spec": {**self.job, "completionMod": "Indexed"}}
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, SCHEMAS[-1], strict=True)

    def test_the_pods_find_each_other(self):
        # JobSet names the pods JOBSET-REPLICATED-JOB-POD, below a Service with the JobSet's name.
        self.assertTrue(self.jobs["network"]["enableDNSHostnames"])
        self.assertTrue(self.jobs["network"]["publishNotReadyAddresses"])
        self.assertNotIn("subdomain", self.jobs["network"])
        name = self.name()
        self.assertEqual(self.node.get("replicas", 1), 1)
        self.assertEqual(self.options["rdzv-endpoint"],
                         f"{name}-{self.node['name']}-0-0.{name}.$(NAMESPACE).svc.cluster.local"
                         f":{self.PORT},{name}.$(NAMESPACE).svc.cluster.local")
        self.assertIn("NAMESPACE", [one["name"] for one in self.container["env"]])
        self.assertEqual(self.options["rdzv-id"], name)
        self.assertEqual(self.options["rdzv-backend"], "c10d")

    def test_its_numbers_agree(self):
        self.assertEqual(self.job["completionMode"], "Indexed")
        self.assertEqual(self.options["nnodes"], f"1:{self.pods()}")
        limit = int(re.fullmatch(r"(\d+)s", self.options["shutdown-timeout"])[1])
        self.assertGreaterEqual(self.pod["terminationGracePeriodSeconds"], limit + 30)

    def test_exit_codes_are_the_launchers(self):
        codes, by_action = checks.exit_codes(GIVEN.source), {}
        self.assertEqual(self.pod["restartPolicy"], "Never")  # else there is no such policy
        for rule in self.job["podFailurePolicy"]["rules"]:
            if "onExitCodes" in rule:
                self.assertEqual(rule["onExitCodes"]["containerName"], self.container["name"])
                by_action[rule["action"]] = set(rule["onExitCodes"]["values"])
        self.assertEqual(by_action, {
            "FailJob": {codes["Usage"], codes["Refused"]},
            "Ignore": {codes["Stopped"], codes["QuorumLost"], codes["Unsaved"],
                       codes["Shunned"]}})
        rule, = self.jobs["failurePolicy"]["rules"]
        self.assertEqual((rule["action"], rule["onJobFailureReasons"]),
                         ("FailJobSet", ["PodFailurePolicy"]))

    def test_every_volume_is_there(self):
        there = {one["name"] for one in self.pod["volumes"]}
        self.assertEqual({one["name"] for one in self.container["volumeMounts"]}, there)
        claims = {one["persistentVolumeClaim"]["claimName"] for one in self.pod["volumes"]
                  if "persistentVolumeClaim" in one}
        self.assertEqual(claims, {self.all["PersistentVolumeClaim"]["metadata"]["name"]})


class JobSetTest(Checks, unittest.TestCase):
    FILE, PORT = "jobset.yaml", 29400

    def jobset(self):
        return self.all["JobSet"]["spec"]

    def name(self):
        return self.all["JobSet"]["metadata"]["name"]

    def arguments(self):
        return []

    def pods(self):
        self.assertEqual(self.job["completions"], self.job["parallelism"])
        return self.job["completions"]


class TrainJobTest(Checks, unittest.TestCase):
    FILE, PORT = "trainjob.yaml", TRAINER_PORT

    def jobset(self):
        return self.all["TrainingRuntime"]["spec"]["template"]["spec"]

    def name(self):
        return self.all["TrainJob"]["metadata"]["name"]

    def arguments(self):
        return self.all["TrainJob"]["spec"]["trainer"]["args"]

    def pods(self):
        return self.all["TrainJob"]["spec"]["trainer"]["numNodes"]

    def variables(self):
        return {**super().variables(), "PET_NNODES": str(self.pods()),
                "PET_MASTER_ADDR": f"{self.name()}-node-0-0.{self.name()}",
                "PET_MASTER_PORT": str(TRAINER_PORT)}

    def test_the_job_finds_its_runtime(self):
        runtime, job = self.all["TrainingRuntime"], self.all["TrainJob"]["spec"]
        self.assertEqual(job["runtimeRef"], {
            "apiGroup": runtime["apiVersion"].split("/")[0], "kind": runtime["kind"],
            "name": runtime["metadata"]["name"]})
        # By these two names the Trainer knows where to put what a TrainJob says.
        self.assertEqual((self.node["name"], self.container["name"]), ("node", "node"))
        self.assertEqual(self.node["template"]["metadata"]["labels"],
                         {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"})
        self.assertIn("torch", runtime["spec"]["mlPolicy"])


if __name__ == "__main__":
    checks.main_under(GIVEN.python, GIVEN, __file__)
