// The check of a JSON object that is typed by hand: where it breaks, by line and column.

/** @param {string} text @returns {{ value?: any, problem?: string }} */
export function checkJson(text) {
  let value
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { problem: placedProblem(text, error instanceof Error ? error.message : '') }
  }
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject ? { value } : { problem: 'This must be an object, such as { "name": "Ada" }.' }
}

/** Browsers name a position, a line, or neither. @param {string} text @param {string} message */
function placedProblem(text, message) {
  const [, position] = /position (\d+)/.exec(message) ?? []
  const [, line, column] = /line (\d+) column (\d+)/.exec(message) ?? []
  if (line !== undefined) return `This is not valid JSON: line ${line}, column ${column}.`
  if (position === undefined) return 'This is not valid JSON.'
  const lines = text.slice(0, Number(position)).split('\n')
  return `This is not valid JSON: line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}.`
}

/** Says beside the field, while it is typed in, whether its text is an object. @param {Event} event */
export function showJsonProblem(event) {
  const field = /** @type {HTMLTextAreaElement} */ (event.currentTarget)
  const { problem = '' } = checkJson(field.value)
  field.setAttribute('aria-invalid', String(problem !== ''))
  const shown = document.getElementById(`${field.id}-problem`)
  if (shown) shown.textContent = problem
}
