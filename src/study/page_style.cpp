// The look of a study's page.
#include "study/page.h"

namespace sinew::study {

const char* const kStudyPageStyle = R"css(
:root {
  --page: #f6f7f9; --card: #ffffff; --line: #d9dde3; --grid: #eceff3; --text: #1c232d; --soft: #66707e;
  --accent: #2563c9; --best: #d9570b; --bad: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12151a; --card: #1a1f26; --line: #343c47; --grid: #262d36; --text: #e6e9ee; --soft: #97a1af;
    --accent: #6ea8ff; --best: #ff9d4d; --bad: #ff7b72;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 14px/1.45 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 22px; margin: 0 0 2px; }
h2 { font-size: 15px; margin: 0 0 2px; }
p { margin: 0 0 12px; color: var(--soft); }
section { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 16px 18px;
  margin-top: 16px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin-top: 16px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; }
.tile b { display: block; font-size: 20px; font-weight: 600; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 12px; }
.two { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); gap: 16px; }
.many { display: grid; grid-template-columns: repeat(auto-fill, minmax(230px, 1fr)); gap: 14px; }
@media (max-width: 860px) { .two { grid-template-columns: minmax(0, 1fr); } }
.wide { overflow-x: auto; }
svg { display: block; width: 100%; overflow: visible; }
svg text { fill: var(--soft); font-size: 11px; paint-order: stroke; stroke: var(--card); stroke-width: 3px;
  stroke-linejoin: round; }
svg text.name { fill: var(--text); }
svg .axis { stroke: var(--line); } svg .grid { stroke: var(--grid); }
svg .mark { fill: var(--accent); stroke: var(--accent); cursor: default; }
svg .open { fill: none; } svg .failed { stroke: var(--bad); fill: none; }
svg .best { fill: var(--best); stroke: var(--best); }
svg .path { fill: none; stroke: var(--accent); stroke-width: 1.3; }
svg .path.best { fill: none; stroke: var(--best); stroke-width: 2.2; stroke-opacity: 1; }
svg .step { fill: none; stroke: var(--best); stroke-width: 2; }
svg .bar { fill: var(--accent); } svg .pair { fill: var(--accent); fill-opacity: .45; }
svg .hot { stroke-opacity: 1 !important; stroke-width: 3; }
table { border-collapse: collapse; font-size: 12.5px; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: 4px 10px; border-bottom: 1px solid var(--grid); text-align: right; white-space: nowrap; }
th { position: sticky; top: 0; background: var(--card); cursor: pointer; color: var(--soft); font-weight: 600;
  user-select: none; }
th.sorted { color: var(--text); }
td.word, th.word { text-align: left; }
tr.best td { color: var(--best); font-weight: 600; } tr.failed td { color: var(--bad); }
.scroll { max-height: 460px; overflow: auto; }
pre { margin: 8px 0 0; padding: 10px 12px; background: var(--page); border: 1px solid var(--grid); border-radius: 6px;
      font-size: 12px; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
#tip { position: fixed; pointer-events: none; display: none; max-width: 380px; background: var(--text);
  color: var(--card);
       border-radius: 6px; padding: 7px 10px; font-size: 12px; white-space: pre-line; z-index: 9; }
)css";

}  // namespace sinew::study
