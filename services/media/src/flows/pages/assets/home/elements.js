// Elements of the page at `/`.
export const $ = (id) => document.getElementById(id)
export const form = $('form')

/** Makes an element with these properties and children. */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties)
  made.append(...children)
  return made
}
