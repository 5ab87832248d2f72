// Stands between the page and the theme's search worker, whose address is in ?theme=. The theme's worker appends * to every word
// and reads : ^ ~ + - * as operators, so that a pasted error message finds anything but itself. Here queries are rewritten first.
const QUERY = 2 // the theme's number for such a message
const STOP = new Set((
  "a about after all also am an and another any are as at be been before being but by can cannot could did do does doing done each either every few for from get gets got had has " +
  "have having he her here him his how i if in into is it its just like may me might more most much must my no nor of off on or other our out over own please " +
  "same she should so some such than that the their them then there these they this those through to too under until up use used using very was way we were what when where which while who " +
  "why will with without would you your file line user code call last most recent traceback py"
).split(" "))

function rewrite(query) {
  const words = query.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean)
  const telling = words.filter(word => !STOP.has(word) && (word.length > 1 || words.length < 3) && !/^(0x)?[\da-f]*\d[\da-f]{5,}$/.test(word))
  const kept = [...new Set(telling.length ? telling : words)].slice(0, 40)
  // ^1 keeps the theme from appending *; the last word of a short query may be half typed
  return kept.map((word, at) => kept.length < 6 && at === kept.length - 1 && !/\s$/.test(query) ? word : `${word}^1`).join(" ")
}

addEventListener("message", event => {
  const message = event.data
  if (message.type !== QUERY || message.rewritten) return
  event.stopImmediatePropagation()
  dispatchEvent(new MessageEvent("message", { data: { type: QUERY, data: rewrite(message.data), rewritten: true } }))
})

importScripts(new URL(new URLSearchParams(location.search).get("theme"), location.href))
