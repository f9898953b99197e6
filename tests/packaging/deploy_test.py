"""Manifests, units, Dockerfiles, workflows: what a machine without cluster, cloud, forge or daemon
can check of them.

Promises   each manifest is valid by the schemas of Kubernetes; its names, ports, numbers and exit
           codes agree with each other and with the launcher's; systemd takes the unit; the options
           that any of them gives are options of keelrun; what Dockerfiles copy is there; workflows
           are valid by the schema of their forge, and a linter finds nothing in them.
Does not   start a pod, a unit or a container.
"""
import fnmatch
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

import checks

GIVEN = checks.arguments(python={"default": ""})
PACKAGING = GIVEN.source / "packaging"
KEELRUN = GIVEN.build / "bin/keelrun"
SCHEMAS = ("1.31", "1.37")


def seconds(text):
    return int(re.fullmatch(r"(\d+)s", text)[1])


class KubernetesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            import yaml  # pylint: disable=import-outside-toplevel
        except ImportError:
            raise unittest.SkipTest("this Python has no yaml (tools/setup.sh --tests)") from None
        text = (PACKAGING / "kubernetes/train.yaml").read_text()
        cls.all = [one for one in yaml.safe_load_all(text) if one]
        cls.kinds = {one["kind"]: one for one in cls.all}
        cls.job = cls.kinds["Job"]
        cls.pod = cls.job["spec"]["template"]["spec"]
        cls.container, = cls.pod["containers"]
        words = cls.container["command"]
        cls.words = words[words.index("keelrun") + 1:]
        cls.options = checks.understood(KEELRUN, cls.words)

    def test_the_schemas_take_it(self):
        try:
            import kubernetes_validate  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("this Python has no kubernetes_validate (tools/setup.sh --tests)")
        for one in self.all:
            for schema in SCHEMAS:
                with self.subTest(one["kind"], schema=schema):
                    kubernetes_validate.validate(one, schema, strict=True)
        wrong = {**self.job, "spec": {**self.job["spec"], "completionMod": "Indexed"}}
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, SCHEMAS[-1], strict=True)

    def test_the_pods_find_each_other(self):
        name, service = self.job["metadata"]["name"], self.kinds["Service"]
        self.assertEqual(service["spec"]["clusterIP"], "None")
        self.assertTrue(service["spec"]["publishNotReadyAddresses"])
        self.assertEqual(service["spec"]["selector"], {"batch.kubernetes.io/job-name": name})
        self.assertEqual(self.pod["subdomain"], service["metadata"]["name"])
        port, = (one["port"] for one in service["spec"]["ports"])
        self.assertEqual(self.options["rdzv-endpoint"],
                         f"{name}-0.{self.pod['subdomain']}.$(NAMESPACE).svc.cluster.local:{port},"
                         f"{self.pod['subdomain']}.$(NAMESPACE).svc.cluster.local")
        self.assertIn("NAMESPACE", [one["name"] for one in self.container["env"]])

    def test_its_numbers_agree(self):
        spec = self.job["spec"]
        self.assertEqual(spec["completionMode"], "Indexed")
        self.assertEqual(spec["completions"], spec["parallelism"])
        self.assertEqual(self.options["nnodes"].split(":")[1], str(spec["completions"]))
        self.assertGreaterEqual(self.pod["terminationGracePeriodSeconds"],
                                seconds(self.options["shutdown-timeout"]) + 30)

    def test_exit_codes_are_the_launchers(self):
        codes = checks.exit_codes(GIVEN.source)
        rules = self.job["spec"]["podFailurePolicy"]["rules"]
        self.assertEqual(self.pod["restartPolicy"], "Never")  # else there is no such policy
        by_action = {}
        for rule in rules:
            if "onExitCodes" in rule:
                self.assertEqual(rule["onExitCodes"]["containerName"], self.container["name"])
                by_action[rule["action"]] = set(rule["onExitCodes"]["values"])
        self.assertEqual(by_action["FailJob"], {codes["Usage"], codes["Refused"]})
        self.assertEqual(by_action["Ignore"],
                         {codes["Stopped"], codes["QuorumLost"], codes["Unsaved"],
                          codes["Shunned"]})

    def test_every_volume_is_there(self):
        there = {one["name"] for one in self.pod["volumes"]}
        self.assertEqual({one["name"] for one in self.container["volumeMounts"]}, there)
        claims = {one["persistentVolumeClaim"]["claimName"] for one in self.pod["volumes"]
                  if "persistentVolumeClaim" in one}
        self.assertEqual(claims, {self.kinds["PersistentVolumeClaim"]["metadata"]["name"]})


class RayJobTest(unittest.TestCase):
    """KubeRay's own schema is not to be had as a package: of the manifest only what is
    Kubernetes', and what agrees with the script that it starts."""

    def setUp(self):
        try:
            import kubernetes_validate  # pylint: disable=import-outside-toplevel
            import yaml  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("this Python has no kubernetes_validate (tools/setup.sh --tests)")
        self.validate = kubernetes_validate.validate
        self.spec = yaml.safe_load((PACKAGING / "ray/rayjob.yaml").read_text())["spec"]
        self.cluster = self.spec["rayClusterSpec"]
        self.workers, = self.cluster["workerGroupSpecs"]

    def test_the_schemas_take_its_pods(self):
        for group in (self.cluster["headGroupSpec"], self.workers):
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"},
                   "spec": group["template"]["spec"]}
            for schema in SCHEMAS:
                self.validate(pod, schema, strict=True)

    def test_it_starts_the_script_with_as_many_nodes_as_there_are(self):
        words = self.spec["entrypoint"].split()
        self.assertEqual(words[:2], ["python", "/usr/share/evenkeel/ray/ray_train.py"])
        self.assertTrue((PACKAGING / "ray/ray_train.py").exists())
        for name in ("replicas", "minReplicas", "maxReplicas"):
            self.assertEqual(words[words.index("--nodes") + 1], str(self.workers[name]))
        understood = checks.understood(KEELRUN, words[words.index("--") + 1:])
        self.assertGreaterEqual(self.workers["template"]["spec"]["terminationGracePeriodSeconds"],
                                seconds(understood["shutdown-timeout"]) + 30)

    def test_exit_codes_are_the_launchers(self):
        text, codes = (PACKAGING / "ray/ray_train.py").read_text(), checks.exit_codes(GIVEN.source)
        again, = re.findall(r"(?m)^STARTED_AGAIN = \((.*?)\)", text)
        self.assertEqual({int(one) for one in again.split(",")},
                         {codes["Stopped"], codes["QuorumLost"], codes["Unsaved"]})
        for name, code in (("LEFT_OUT", "Shunned"), ("STOPPED", "Stopped"),
                           ("REFUSED", "Refused")):
            self.assertRegex(text, rf"(?m)^{name} = {codes[code]}\b")

    def test_who_mounts_the_claim_may_write_there(self):
        for group in (self.cluster["headGroupSpec"], self.workers):
            pod = group["template"]["spec"]
            if any("persistentVolumeClaim" in one for one in pod.get("volumes", [])):
                self.assertEqual(pod["securityContext"]["fsGroup"], 1000)
        self.assertIn("volumes", self.workers["template"]["spec"])


class SystemdTest(unittest.TestCase):
    def setUp(self):
        self.path = PACKAGING / "systemd/keelrun@.service"
        self.text = self.path.read_text()
        self.values = dict(re.findall(r"(?m)^(\w+)=(.*)$", self.text))

    def test_systemd_takes_it(self):
        checks.need("systemd-analyze", "systemd")
        with tempfile.TemporaryDirectory() as folder:
            for text, expected in ((self.text, 0),
                                   (self.text.replace("KillMode=mixed", "KillMode=mixt"), 1)):
                unit = os.path.join(folder, "keelrun@.service")
                with open(unit, "w", encoding="utf-8") as file:
                    file.write(text.replace("ExecStart=keelrun", f"ExecStart={KEELRUN}"))
                with self.subTest(expected):
                    done = checks.run("sh", "-c", 'systemd-analyze verify --man=no "$0" 2>&1 '
                                         '| grep -F keelrun@ || :', unit)
                    self.assertEqual(bool(done), bool(expected), done)

    def test_its_options_are_keelruns(self):
        words = self.values["ExecStart"].replace("$TRAIN", "./train").split()
        self.assertEqual(words.pop(0), "keelrun")
        self.assertEqual(checks.understood(KEELRUN, words)["standalone"], "true")

    def test_its_examples_save_where_it_may_write(self):
        self.assertEqual(self.values["DynamicUser"], "yes")  # all but its own folder is read-only
        for text in (self.text, (PACKAGING / "README.md").read_text()):
            folder, = re.findall(r"(?m)^(?:#.* )?TRAIN=.* --checkpoint-dir (\S+)", text)
            self.assertFalse(os.path.isabs(folder), folder)

    def test_it_waits_longer_than_the_workers_have(self):
        allowed = seconds(checks.understood(KEELRUN, ["x"])["shutdown-timeout"])
        self.assertGreaterEqual(int(self.values["TimeoutStopSec"]), allowed + 60)

    def test_exit_codes_are_the_launchers(self):
        codes = checks.exit_codes(GIVEN.source)
        self.assertEqual(self.values["SuccessExitStatus"].split(),
                         [str(codes["Stopped"]), str(codes["Unsaved"])])
        self.assertEqual(self.values["RestartPreventExitStatus"].split(),
                         [str(codes["Usage"]), str(codes["Refused"])])

    def test_it_waits_for_the_disks_that_it_saves_on(self):
        self.assertIn("remote-fs.target", self.values["After"].split())
        readme = (PACKAGING / "README.md").read_text()
        examples = [one for one in re.findall(r"(?s)```ini\n(.*?)```", readme) if "User=" in one]
        examples += re.findall(r"(?m)^(?:#   .*\n)+#   User=.*$", self.text)
        self.assertEqual(len(examples), 3)
        for example in examples:   # each saves elsewhere than in the unit's own folder
            self.assertRegex(example, r"\[Unit\]\n(?:#   )?RequiresMountsFor=/")


class WorkflowsTest(unittest.TestCase):
    def setUp(self):
        self.files = sorted((GIVEN.source / ".github/workflows").glob("*.yml"))

    def linter(self, name):
        """A program of the environment whose Python runs this."""
        program = pathlib.Path(sys.prefix, "bin", name)
        if not program.exists():
            self.skipTest(f"there is no {program} (tools/setup.sh --tests)")
        return program

    def test_the_schema_takes_them(self):
        command = [self.linter("check-jsonschema"), "--builtin-schema", "vendor.github-workflows"]
        checks.run(*command, *self.files)
        with tempfile.TemporaryDirectory() as folder:
            wrong = pathlib.Path(folder, "wrong.yml")
            wrong.write_text(self.files[0].read_text().replace("runs-on:", "run-on:"))
            with self.assertRaises(AssertionError):
                checks.run(*command, wrong)

    def test_the_linter_finds_nothing(self):
        checks.run(self.linter("zizmor"), "--offline", "--no-progress", *self.files)

    def test_they_run_what_everybody_runs(self):
        text = "".join(path.read_text() for path in self.files)
        self.assertRegex(text, r"(?m)^ +run: \.ci/run ")
        for option in re.findall(r"'(--\w+)'", text):
            self.assertIn(option, (GIVEN.source / "tests/run.sh").read_text())


class DockerTest(unittest.TestCase):
    def test_what_is_copied_is_there(self):
        ignored = [line.strip() for line in (GIVEN.source / ".dockerignore").read_text().split("\n")
                   if line.strip() and not line.startswith("#")]
        for name in ("Dockerfile", "Dockerfile.cuda"):
            text = (PACKAGING / "docker" / name).read_text().replace("\\\n", " ")
            for source in re.findall(r"(?m)^COPY (?!--from)(.*) \S+$", text):
                for path in source.split():
                    self.assertTrue((GIVEN.source / path).exists(), f"{name}: {path}")
                    self.assertFalse(any(fnmatch.fnmatch(path, one) for one in ignored), path)

    def test_its_first_step_has_all_that_the_script_reads(self):
        for name in ("Dockerfile", "Dockerfile.cuda"):
            text = (PACKAGING / "docker" / name).read_text()
            copied, = re.findall(r"(?m)^COPY (tools/setup\.sh .*) tools/$", text)
            with tempfile.TemporaryDirectory() as folder:
                tools = pathlib.Path(folder) / "tools"
                tools.mkdir()
                for path in copied.split():
                    shutil.copy(GIVEN.source / path, tools)
                checks.run(tools / "setup.sh", "--no-packages", "--torch-free", "--no-build")

    # keelrun asks that file which PyTorch it is.
    def test_its_torch_tells_its_version(self):
        for name in ("Dockerfile", "Dockerfile.cuda"):
            text = (PACKAGING / "docker" / name).read_text()
            self.assertIn("site-packages/torch/version.py /image", text, name)

    def test_its_build_options_are_ours(self):
        ours = set(re.findall(r"option\('(\w+)'", (GIVEN.source / "meson_options.txt").read_text()))
        for name in ("Dockerfile", "Dockerfile.cuda"):
            text = (PACKAGING / "docker" / name).read_text()
            given = {one.lower() for one in re.findall(r"-DKEEL_(\w+)=", text)}
            self.assertTrue(given)
            self.assertLessEqual(given, ours)

    def test_its_shell_is_clean(self):
        checks.need("shellcheck", "shellcheck")
        for name in ("Dockerfile", "Dockerfile.cuda"):
            text = (PACKAGING / "docker" / name).read_text()
            text = re.sub(r"(?m)^ *#.*\n", "", text).replace("\\\n", " ")
            script = "\n".join(re.findall(r"(?m)^RUN (.*)$", text)) + "\n"
            checks.run("shellcheck", "--norc", "--shell=sh", "-", stdin=None, input=script)


if __name__ == "__main__":
    checks.main_under(GIVEN.python, GIVEN, __file__)
