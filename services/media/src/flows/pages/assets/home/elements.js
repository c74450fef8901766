// Elements of the page at `/`.
export const $ = (id) => document.getElementById(id)
export const form = $('form')
