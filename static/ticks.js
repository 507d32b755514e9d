// Rows that are ticked on a list: in ranges with Shift, all of a page at once, and kept while one turns its pages. They
// are kept for this tab and this filter only, and forgotten when something is done with them.
const TICKS_MAX = 500; // as many as one filter names
const form = document.getElementById("pick");

function begin() {
  const boxes = [...document.getElementsByName("task")], sum = document.getElementById("ticked");
  const place = `ticked ${form.dataset.filter}`, here = new Set(boxes.map((box) => box.value));
  let last = null;

  const kept = () => JSON.parse(sessionStorage.getItem(place) ?? "[]").filter((task) => !here.has(task));
  const ticked = () => boxes.filter((box) => box.checked).map((box) => box.value);

  function note() {
    const others = kept(), all = [...others, ...ticked()];
    sessionStorage.setItem(place, JSON.stringify(all));
    const elsewhere = others.length ? `, ${others.length} of them on other pages` : "";
    const many = all.length > TICKS_MAX ? `; at most ${TICKS_MAX} go at once` : "";
    sum.textContent = all.length ? `${all.length} ticked${elsewhere}${many}` : "";
    form.classList.toggle("some", all.length > 0);
    for (const button of form.querySelectorAll("[name=kind]")) button.disabled = all.length > TICKS_MAX;
  }

  function click({ target, shiftKey }) {
    if (target.dataset.all) for (const box of boxes) box.checked = target.checked;
    if (target.id === "untick") {
      sessionStorage.removeItem(place);
      for (const box of boxes) box.checked = false;
    }
    if (boxes.includes(target)) {
      const [from, to] = [boxes.indexOf(shiftKey && last ? last : target), boxes.indexOf(target)].sort((a, b) => a - b);
      for (const box of boxes.slice(from, to + 1)) box.checked = target.checked;
      last = target;
    }
    note();
  }

  function send() {
    for (const old of form.querySelectorAll("[type=hidden]")) old.remove();
    for (const task of kept()) form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "task", value: task }));
    sessionStorage.removeItem(place);
  }

  for (const task of JSON.parse(sessionStorage.getItem(place) ?? "[]")) {
    const box = boxes.find(({ value }) => value === task);
    if (box) box.checked = true;
  }
  document.addEventListener("click", click);
  form.addEventListener("submit", send);
  addEventListener("pageshow", note);
  note();
}

if (form) begin();
