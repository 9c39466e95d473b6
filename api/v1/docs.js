"use strict";
const name = ref => ref.split("/").pop();

// el makes an element; children that are texts stay texts, so nothing in the document can become markup.
function el(tag, attributes, ...children) {
  const e = Object.assign(document.createElement(tag), attributes);
  e.append(...children.filter(c => c != null && c !== ""));
  return e;
}

// type says in a few words what a schema allows.
function type(s) {
  if (!s) return "";
  if (s.$ref) return el("a", { href: "#" + name(s.$ref) }, name(s.$ref));
  const any = s.anyOf || s.oneOf;
  if (any) return el("span", {}, ...any.flatMap((one, i) => i ? [" or ", type(one)] : [type(one)]));
  if (s.type === "array") return el("span", {}, "list of ", type(s.items));
  if (s.enum) return s.enum.join(" | ");
  const named = [].concat(s.type || "any JSON").join(" or ");
  if (s.additionalProperties && s.additionalProperties.type) return named + " of " + s.additionalProperties.type;
  const bounds = [s.minimum != null && "≥ " + s.minimum, s.maximum != null && "≤ " + s.maximum, s.maxLength != null && "up to " + s.maxLength + " characters",
    s.default != null && "default " + s.default, s.pattern].filter(Boolean);
  return named + (s.format && !/^int/.test(s.format) ? " (" + s.format + ")" : "") + (bounds.length ? ", " + bounds.join(", ") : "");
}

function table(head, rows) {
  if (!rows.length) return "";
  return el("table", {}, el("thead", {}, el("tr", {}, ...head.map(h => el("th", {}, h)))),
    el("tbody", {}, ...rows.map(r => el("tr", {}, ...r.map(c => el("td", {}, c))))));
}

const content = c => Object.entries(c || {}).map(([media, m]) => el("div", {}, el("code", {}, media), " ", type(m.schema)));

function operation(method, path, o) {
  const parameters = (o.parameters || []).map(p => [el("code", {}, p.name), p.in, type(p.schema), (p.required ? "required; " : "") + (p.description || "")]);
  const responses = Object.entries(o.responses || {}).map(([status, r]) => [status, r.description || "", el("div", {}, ...content(r.content))]);
  return el("details", { id: o.operationId },
    el("summary", {}, el("span", { className: "method" }, method.toUpperCase()), " ", el("span", { className: "path" }, path), el("span", { className: "note" }, o.summary || "")),
    el("p", {}, o.description || ""),
    table(["Parameter", "In", "Type", ""], parameters),
    o.requestBody ? el("div", {}, el("strong", {}, "Body"), ...content(o.requestBody.content)) : "",
    table(["Answer", "", ""], responses));
}

function schema(title, s) {
  const fields = Object.entries(s.properties || {}).map(([field, f]) =>
    [el("code", {}, field), type(f), ((s.required || []).includes(field) ? "" : "optional; ") + (f.description || "")]);
  return el("details", { id: title }, el("summary", {}, el("code", {}, title)), el("p", {}, s.description || ""), table(["Field", "Type", ""], fields));
}

function show(doc) {
  document.getElementById("about").textContent = doc.info.description;
  const operations = Object.entries(doc.paths).flatMap(([path, item]) => Object.entries(item).map(([method, o]) => [method, path, o]));
  for (const tag of doc.tags) {
    document.getElementById("operations").append(el("h2", {}, tag.name), ...operations.filter(([, , o]) => o.tags.includes(tag.name)).map(o => operation(...o)));
  }
  document.getElementById("schemas").append(...Object.entries(doc.components.schemas).map(([title, s]) => schema(title, s)));
  addEventListener("hashchange", reveal);
  reveal();
}

// reveal opens what a link points to.
function reveal() {
  const target = document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) { target.open = true; target.scrollIntoView(); }
}

fetch("openapi.json").then(r => r.json()).then(show)
  .catch(e => { document.getElementById("about").textContent = "The description cannot be read: " + e; });
