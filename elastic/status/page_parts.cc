// Colours follow the reader's choice of light or dark; nothing is loaded from anywhere.
#include "elastic/status/page_parts.h"

namespace keel {

const std::string_view kStatusStyle = R"css(
:root { --ink: #1c2430; --dim: #5c6675; --paper: #f5f7fa; --card: #ffffff; --edge: #d8dee7;
  --run: #2f7de1; --good: #2e9e6b; --past: #9db4d3; --bad: #d4483b; --warn: #d08a12;
  --p0: #4e79a7; --p1: #59a14f; --p2: #8cd17d; --p3: #f28e2b; --p4: #edc948; --p5: #b07aa1;
  --p6: #ff9da7; --p7: #9c755f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --dim: #9aa5b5; --paper: #12161d; --card: #1b212b; --edge: #303947;
    --past: #4a5f7d; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1rem; background: var(--paper);
  color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.35rem; margin: 0; display: inline; }
h2 { font-size: 1rem; margin: 0 0 .5rem; }
svg + h2 { margin-top: 1rem; }
section { background: var(--card); border: 1px solid var(--edge); border-radius: 8px;
  padding: .8rem 1rem; margin: .8rem 0; overflow-x: auto; }
.cards { display: flex; flex-wrap: wrap; gap: .8rem; margin: .8rem 0; }
.cards div { background: var(--card); border: 1px solid var(--edge); border-radius: 8px;
  padding: .5rem .9rem; min-width: 6.5rem; flex: 1 0 auto; }
.cards b { display: block; font-size: 1.25rem; font-weight: 600; white-space: nowrap; }
.cards span, .note { color: var(--dim); font-size: .85rem; }
.pill { border-radius: 1rem; padding: .1rem .7rem; color: #fff; background: var(--warn);
  margin: 0 .5rem; font-size: .9rem; }
.pill.running { background: var(--good); }
#lost { background: var(--bad); color: #fff; padding: .5rem 1rem; border-radius: 8px;
  margin: .5rem 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--dim); font-weight: 500; font-size: .85rem; }
th, td { padding: .2rem .7rem .2rem 0; border-bottom: 1px solid var(--edge);
  vertical-align: top; overflow-wrap: anywhere; }
tr:last-child td { border-bottom: 0; }
td.n, th.n { text-align: right; }
td.t { white-space: nowrap; }
td.bar { width: 70%; vertical-align: middle; }
.bad { color: var(--bad); } .good { color: var(--good); } .dim { color: var(--dim); }
svg { display: block; width: 100%; height: auto; }
svg text { font-size: 11px; fill: var(--dim); stroke: var(--card); stroke-width: 3px;
  paint-order: stroke; }
svg text.middle, svg text.inside { text-anchor: middle; } svg text.end { text-anchor: end; }
svg text.inside { fill: #fff; stroke: none; }
svg line { stroke: var(--edge); stroke-width: 1; }
rect.running { fill: var(--run); } rect.ended { fill: var(--past); }
rect.broken { fill: var(--bad); opacity: .75; }
rect.death, rect.host-gone { fill: var(--bad); } rect.stop, rect.notice { fill: var(--warn); }
rect.saved { fill: var(--good); }
polyline { fill: none; stroke: var(--run); stroke-width: 1.6; stroke-linejoin: round; }
.p0 { fill: var(--p0); } .p1 { fill: var(--p1); } .p2 { fill: var(--p2); } .p3 { fill: var(--p3); }
.p4 { fill: var(--p4); } .p5 { fill: var(--p5); } .p6 { fill: var(--p6); } .p7 { fill: var(--p7); }
svg.key { display: inline-block; width: .7rem; height: .7rem; margin: 0 .3rem 0 .9rem; }
)css";

const std::string_view kStatusScript = R"js(
'use strict';
async function look() {
  const lost = document.getElementById('lost');
  try {
    const reply = await fetch(location.href,
                              {cache: 'no-store', signal: AbortSignal.timeout(5000)});
    if (!reply.ok) throw new Error('status ' + reply.status);
    const fresh = new DOMParser().parseFromString(await reply.text(), 'text/html');
    const chosen = window.getSelection();
    if (!chosen || chosen.isCollapsed) {
      document.getElementById('all').replaceWith(fresh.getElementById('all'));
      document.title = fresh.title;
    }
    lost.hidden = true;
  } catch (problem) {
    lost.hidden = false;
  }
  setTimeout(look, 2000);
}
setTimeout(look, 2000);
)js";

}  // namespace keel
