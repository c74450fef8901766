// Go-style templates of mails: parsed once to a tree, rendered many times. A template is trusted, its values are not,
// so each value is escaped for its place or refused (html-context.ts). Syntax: scan.ts, parse.ts; tests:
// template.test.ts.
import type { Expression } from './expression.ts'
import { FUNCTIONS, type TemplateFunction } from './functions.ts'
import { advance, escapeAt, type HtmlContext, refusalAt, startOfDocument } from './html-context.ts'
import { type Node, parseTemplate } from './parse.ts'
import { syntaxError, TemplateError } from './template-error.ts'
import { fieldOf, isEncoded, isTrue, type TemplateVariables, toText } from './values.ts'

export interface Template {
  mode: 'html' | 'text'
  nodes: readonly Node[]
  fields: ReadonlySet<string>
}

/** Throws a TemplateError with its line, in HTML also for misplaced values. `text` escapes nothing. */
export function compileTemplate(source: string, mode: Template['mode']): Template {
  const template = { mode, ...parseTemplate(source) }
  if (mode === 'html') checkPlaces(source, template.nodes, startOfDocument())
  return template
}

/** Walks both branches of every choice: one that no sample reaches would otherwise fail when a mail is due. */
function checkPlaces(source: string, nodes: readonly Node[], context: HtmlContext): void {
  for (const node of nodes) {
    if (node.kind === 'text') advance(context, node.text)
    if (node.kind === 'output') {
      const refusal = refusalAt(context)
      if (refusal) throw syntaxError(source, node.at, refusal)
    }
    if ('body' in node) {
      const otherwise = { ...context }
      checkPlaces(source, node.body, context)
      checkPlaces(source, node.otherwise, otherwise)
    }
  }
}

/** Longest result, in UTF-16 units: loops over metadata could fill the memory. */
export const MAX_OUTPUT = 2_000_000
/** Most nodes and rounds: nested loops could run for hours without output. */
const MAX_STEPS = 100_000

interface Run {
  mode: Template['mode']
  root: unknown
  schemes: ReadonlySet<string>
  context: HtmlContext
  output: string[]
  length: number
  steps: number
  variables: { name: string; value: unknown }[]
}

/** Schemes of links made from values; a link with another one becomes `#ZgotmplZ`. */
export const LINK_SCHEMES: ReadonlySet<string> = new Set(['http', 'https', 'mailto', 'tel'])

/** Renders a template; unknown variables are empty. Throws a TemplateError past the limits above. */
export function renderTemplate(
  { mode, nodes }: Template,
  variables: TemplateVariables,
  schemes: ReadonlySet<string> = LINK_SCHEMES,
): string {
  const run: Run = {
    mode,
    root: variables,
    schemes,
    context: startOfDocument(),
    output: [],
    length: 0,
    steps: 0,
    variables: [{ name: '$', value: variables }],
  }
  renderNodes(run, nodes, variables)
  return run.output.join('')
}

function renderNodes(run: Run, nodes: readonly Node[], dot: unknown): void {
  const outside = run.variables.length
  for (const node of nodes) {
    takeStep(run)
    renderNode(run, node, dot)
  }
  run.variables.length = outside
}

function takeStep(run: Run): void {
  if (++run.steps > MAX_STEPS) throw new TemplateError(`the template takes more than ${MAX_STEPS} steps`)
}

function renderNode(run: Run, node: Node, dot: unknown): void {
  switch (node.kind) {
    case 'text':
      if (run.mode === 'html') advance(run.context, node.text)
      write(run, node.text)
      break
    case 'output': {
      const value = evaluate(run, node.value, dot)
      write(run, run.mode === 'html' ? escapeAt(run.context, value, run.schemes) : toText(value))
      break
    }
    case 'assign':
      assign(run, node, evaluate(run, node.value, dot))
      break
    case 'if':
    case 'with':
      renderChoice(run, node, dot)
      break
    case 'range':
      renderRange(run, node, dot)
      break
  }
}

function write(run: Run, text: string): void {
  run.length += text.length
  if (run.length > MAX_OUTPUT) throw new TemplateError(`the result is longer than ${MAX_OUTPUT} characters`)
  run.output.push(text)
}

/** A loop that doubles a text fills any memory in thirty rounds. */
function withinLimit(value: unknown): unknown {
  if (typeof value === 'string' && value.length > MAX_OUTPUT) {
    throw new TemplateError(`a text is longer than ${MAX_OUTPUT} characters`)
  }
  return value
}

function assign(run: Run, { name, isNew }: { name: string; isNew: boolean }, value: unknown): void {
  const known = isNew ? undefined : run.variables.findLast((variable) => variable.name === name)
  if (known) known.value = value
  else run.variables.push({ name, value })
}

function renderChoice(run: Run, node: Extract<Node, { name: string | undefined; body: Node[] }>, dot: unknown): void {
  const value = evaluate(run, node.value, dot)
  const outside = run.variables.length
  if (node.name) run.variables.push({ name: node.name, value })
  if (isTrue(value)) renderNodes(run, node.body, node.kind === 'with' ? value : dot)
  else renderNodes(run, node.otherwise, dot)
  run.variables.length = outside
}

/** Iterates over a list in order, over an object by sorted key. */
function renderRange(run: Run, node: Extract<Node, { kind: 'range' }>, dot: unknown): void {
  const value = evaluate(run, node.value, dot)
  const entries = entriesOf(value)
  if (entries.length === 0) renderNodes(run, node.otherwise, dot)
  const outside = run.variables.length
  for (const [key, item] of entries) {
    takeStep(run)
    const values = node.names.length === 1 ? [item] : [key, item]
    for (const [index, name] of node.names.entries()) run.variables.push({ name, value: values[index] })
    renderNodes(run, node.body, item)
    run.variables.length = outside
  }
}

function entriesOf(value: unknown): [unknown, unknown][] {
  if (Array.isArray(value)) return value.map((item, index) => [index, item])
  if (typeof value !== 'object' || value === null || isEncoded(value)) return []
  return Object.keys(value)
    .sort()
    .map((key) => [key, fieldOf(value, key)])
}

function evaluate(run: Run, expression: Expression, dot: unknown): unknown {
  switch (expression.kind) {
    case 'dot':
      return dot
    case 'literal':
      return expression.value
    case 'variable':
      return run.variables.findLast(({ name }) => name === expression.name)?.value
    case 'field':
      return fieldOf(evaluate(run, expression.of, dot), expression.name)
    case 'call': {
      const values = expression.arguments.map((argument) => evaluate(run, argument, dot))
      return withinLimit((FUNCTIONS[expression.name] as TemplateFunction).call(values, run.mode))
    }
  }
}
