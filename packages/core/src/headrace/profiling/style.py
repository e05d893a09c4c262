"""Style of the page: dark or light as the reader's system has it, no fonts or scripts."""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--paper:#fbfaf8;--card:#fff;--ink:#1d2430;--soft:#5a6473;
--line:#e2e0da;
--accent:#0b6bcb;--good:#1a7f4b;--warn:#a85a00;--track:#eceae5;
--c0:#2f6fd0;--c1:#0f8b8d;--c2:#2c9a6b;--c3:#b0468f;--c4:#7a63d2;--c5:#b58a12;--c6:#5b7fa6;
--c7:#c2434d;
--c8:#6c7a2b;--c9:#7d6a5c;--works:#2c9a6b;--waits:#d9722b;--asks:#b0468f;--idle:#c9cdd4}
@media (prefers-color-scheme:dark){:root{--paper:#14171c;--card:#1c2027;--ink:#e8eaee;
--soft:#a3adbb;
--line:#323843;--accent:#6db3ff;--good:#5fce93;--warn:#f0a957;--track:#2a3039;
--c0:#6da2f2;--c1:#4fc4bd;--c2:#5cc697;--c3:#dd83c0;--c4:#a593f0;--c5:#dcb64c;--c6:#8fb2d6;
--c7:#ee7f88;
--c8:#a5b55c;--c9:#b39f90;--works:#5cc697;--waits:#f09a5c;--asks:#dd83c0;--idle:#4a515d}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif}
main{max-width:68rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.7rem;margin:0 0 .25rem}
h2{font-size:1.2rem;margin:2.2rem 0 .6rem}
h3{font-size:1.02rem;margin:0}
p{margin:.3rem 0}
.soft{color:var(--soft)}
.pipeline+.pipeline{margin-top:3.5rem;border-top:2px solid var(--line);padding-top:2rem}
dl.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.3rem,1fr));gap:.75rem;
margin:1.2rem 0}
dl.facts div{background:var(--card);border:1px solid var(--line);border-radius:.6rem;
padding:.6rem .85rem;
display:flex;flex-direction:column-reverse}
dl.facts dt{color:var(--soft);font-size:.85rem}
dl.facts dd{margin:0;font-size:1.35rem;font-weight:600;font-variant-numeric:tabular-nums}
.advice{background:var(--card);border:1px solid var(--line);border-left:.35rem solid var(--warn);
border-radius:.6rem;padding:.85rem 1.1rem;margin:.7rem 0}
.advice.good{border-left-color:var(--good)}
.advice code,.how{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;
font-size:.9rem}
.table{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:.6rem}
table{border-collapse:collapse;width:100%;font-size:.93rem}
caption{text-align:left;padding:.6rem .85rem;color:var(--soft)}
@media(max-width:40rem){caption{position:sticky;left:0;max-width:calc(100vw - 4.3rem)}}
th,td{padding:.42rem .85rem;border-top:1px solid var(--line);text-align:left;vertical-align:top}
thead th{font-weight:600;color:var(--soft);font-size:.83rem;white-space:nowrap}
tbody th{font-weight:600}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td small,th small{display:block;color:var(--soft);font-weight:400;font-size:.82rem}
td.b{min-width:9rem;width:26%}
.bar{display:flex;height:.95rem;background:var(--track);border-radius:.25rem;overflow:hidden;
margin-top:.28rem}
.bar i{display:block;height:100%}
.key{display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;margin:.5rem 0;font-size:.88rem;
color:var(--soft);
list-style:none;padding:0}
.key i{display:inline-block;width:.8rem;height:.8rem;border-radius:.2rem;margin-right:.4rem;
vertical-align:-.06rem}
svg{display:block;width:100%;height:auto}
svg text{fill:var(--soft);font-size:12px;font-family:inherit}
.figure{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.85rem;
margin:0;overflow-x:auto}
.figure svg{min-width:40rem}
figcaption{color:var(--soft);font-size:.88rem;margin-top:.4rem}
code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.92em}
a{color:var(--accent)}
""".strip()
"""Style sheet of the page."""
