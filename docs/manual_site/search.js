// How the search sorts results and reads a query; Sphinx loads it after its own searchtools.js.

const PARTS = { tutorial: 10, guides: 10, reference: 4, internals: -2, benchmarks: -4 };
const asked = new URLSearchParams(location.search).get("q") ?? "";
const words = asked.toLowerCase().split(/\s+/).filter((word) => word.length > 2);

// Sphinx's own numbers, except for `score`.
Scorer = {
  score: ([page, title, , , score]) => {
    const named = words.filter((word) => title.toLowerCase().includes(word));
    return score + (PARTS[page.split("/")[0]] ?? 0) + 5 * named.length;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

// Sphinx ignores numbers. The index has those of three digits (search.py).
const parseWords = Search._parseQuery;
Search._parseQuery = (query) => {
  const parsed = parseWords(query);
  for (const code of query.match(/\b\d{3}\b/g) ?? []) {
    parsed[1].add(code);
    parsed[3].add(code);
  }
  return parsed;
};
