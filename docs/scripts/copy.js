// The copy button of a Python block gives the whole program: the block with those it continues, exactly as it was run.
// The n-th Python block of a page belongs to the n-th program of the JSON that the build put at the page's end.
document.addEventListener("click", event => {
  const button = event.target instanceof Element && event.target.closest("[data-clipboard-target]")
  const data = document.getElementById("programs")
  const block = button && button.closest(".language-python.highlight")
  if (!block || !data) return
  const blocks = [...document.querySelectorAll(".language-python.highlight")]
  button.setAttribute("data-clipboard-text", JSON.parse(data.textContent)[blocks.indexOf(block)])
}, true)
