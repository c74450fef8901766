// The check of a JSON object that is typed by hand. A problem is named with its line and column. A text that a parser
// would change is one too: it drops the first of two members with one name, and rounds long numbers.

/** Levels of a member that the service still takes. */
const MAX_LEVELS = 99

/** Digits that every number keeps. */
const EXACT_DIGITS = 15

/** Texts with the colon of a name, numbers, and brackets of JSON. */
const TOKENS = /(?<text>"(?:[^"\\]+|\\.)*")(?<colon>\s*:)?|(?<number>-?\d[\d.eE+-]*)|[{}[\]]/g

/** @param {string} text @returns {{ value?: any, problem?: string }} */
export function checkJson(text) {
  let value
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { problem: placedProblem(text, error instanceof Error ? error.message : '') }
  }
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isObject) return { problem: 'This must be an object, such as { "name": "Ada" }.' }
  const problem = lossOf(text)
  return problem === undefined ? { value } : { problem }
}

/** Names what a parser loses of a text that is JSON. @param {string} text */
function lossOf(text) {
  /** Names of each open bracket. @type {Set<string>[]} */
  const levels = []
  for (const { 0: token, index, groups } of text.matchAll(TOKENS)) {
    if (token === '{' || token === '[') levels.push(new Set())
    else if (token === '}' || token === ']') levels.pop()
    if (levels.length > MAX_LEVELS) return `This has more than ${MAX_LEVELS} levels: ${placeOf(text, index)}.`
    if (groups?.number && !isExact(token)) return `The number ${token} cannot be kept exactly: write it in quotes.`
    if (!groups?.colon) continue
    const name = JSON.parse(groups.text ?? '')
    if (levels.at(-1)?.has(name)) return `The name ${JSON.stringify(name)} is there twice: ${placeOf(text, index)}.`
    levels.at(-1)?.add(name)
  }
  return undefined
}

/** @param {string} number */
function isExact(number) {
  const value = Number(number)
  const digits = number
    .replace(/e.*/i, '')
    .replace(/\D/g, '')
    .replace(/^0+|0+$/g, '')
  if (!Number.isFinite(value) || (value === 0 && digits !== '')) return false
  return digits.length <= EXACT_DIGITS || String(value) === number
}

/** Browsers name a position, a line, or neither. @param {string} text @param {string} message */
function placedProblem(text, message) {
  const [, position] = /position (\d+)/.exec(message) ?? []
  const [, line, column] = /line (\d+) column (\d+)/.exec(message) ?? []
  if (line !== undefined) return `This is not valid JSON: line ${line}, column ${column}.`
  if (position === undefined) return 'This is not valid JSON.'
  return `This is not valid JSON: ${placeOf(text, Number(position))}.`
}

/** @param {string} text @param {number} index */
function placeOf(text, index) {
  const lines = text.slice(0, index).split('\n')
  return `line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`
}

/** Says beside the field, while it is typed in, whether its text is an object. @param {Event} event */
export function showJsonProblem(event) {
  const field = /** @type {HTMLTextAreaElement} */ (event.currentTarget)
  const { problem = '' } = checkJson(field.value)
  field.setAttribute('aria-invalid', String(problem !== ''))
  const shown = document.getElementById(`${field.id}-problem`)
  if (shown) shown.textContent = problem
}
