digraph graphname {
  rankdir=TB;
  node [shape=box];
  "output 0" [shape=cds];
  "__Uniform_0" -> "output 0";
}
