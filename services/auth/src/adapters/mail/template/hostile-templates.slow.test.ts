import { createContext, Script } from 'node:vm'
import { HOSTILE_SEED, hostileRuns } from '@services/common/testing/http/hostile-run'
import { HOSTILE_TEXTS } from '@services/common/testing/http/hostile-values'
import { PATIENCE_MS } from '@services/common/testing/patience'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compileTemplate, renderTemplate } from './template.ts'
import { TemplateError } from './template-error.ts'
import type { TemplateVariables } from './values.ts'

const TEMPLATES = 15 * hostileRuns()

const TEST_WITHIN_MS = 120_000 + 5 * TEMPLATES

/** No template of ours has this word, so that wherever it stands a value stands. */
const MARK = 'zzq'
/** Values that would begin markup, end an attribute or run, if they came out unescaped. */
const ATTACKS = [
  `kk<${MARK}`,
  `kk</${MARK}`,
  `kk<!--${MARK}`,
  `kk"${MARK}`,
  `kk'${MARK}`,
  `kk-->${MARK}`,
  `kk</script><${MARK}`,
  `kk</style><${MARK}`,
  `kk\`\${${MARK}}`,
  `kk ${MARK}=${MARK}`,
  `kk\n${MARK}`,
  `kk*/${MARK}`,
  `javascript:${MARK}`,
  ` \u0001javascript:${MARK}`,
  `JaVa\tScRiPt:${MARK}`,
  `data:text/html,${MARK}`,
  `//k${MARK}`,
  `kk${MARK}:expression(1)`,
  `&lt;${MARK}`,
  `kk\\${MARK}`,
  `{{ .${MARK} }}`,
]

const value: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...ATTACKS) },
  fc.constantFrom(...HOSTILE_TEXTS.filter((text) => text.length < 2_000)),
  fc.constantFrom(0, 1.5, Number.NaN, true, false, null, undefined),
)
const variables: fc.Arbitrary<TemplateVariables> = fc.record({
  A: value,
  B: value,
  List: fc.array(value, { maxLength: 4 }),
  Map: fc.dictionary(fc.constantFrom(`k"${MARK}`, `<${MARK}`, 'b', '__proto__'), value, { maxKeys: 3 }),
  Many: fc.constant(Array.from({ length: 300 }, () => 'x')),
})

const FIELDS = [
  '.A',
  '.B',
  '.List',
  '.Map',
  '.Map.b',
  '.Many',
  '.',
  '$',
  '$.A',
  '.No.Such',
  '.constructor',
  '$x',
  '.__proto__',
]
const FUNCTIONS = [
  ...['and', 'or', 'not', 'eq', 'ne', 'lt', 'len', 'index', 'slice', 'print', 'println', 'html', 'js', 'urlquery'],
  ...['printf "%s"', 'printf "%q%d%.99f"', 'index .List', 'slice .A 1', 'print "<b>"', 'nothing', 'template "x"'],
]
const operand = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...FIELDS) },
  fc.constantFrom('"text"', '`raw`', '1', '-1', '1e99', 'true', 'nil', '""', '"<i>"', '(', ')', '(.A)', '(len .List)'),
)
const pipeline = fc
  .tuple(
    fc.oneof(
      { weight: 3, arbitrary: operand },
      fc.tuple(fc.constantFrom(...FUNCTIONS), operand).map((parts) => parts.join(' ')),
    ),
    fc.array(fc.constantFrom(...FUNCTIONS), { maxLength: 2 }),
  )
  .map(([first, others]) => [first, ...others].join(' | '))
const action = fc.oneof(
  { weight: 6, arbitrary: pipeline },
  pipeline.map((each) => `if ${each}`),
  pipeline.map((each) => `range ${each}`),
  pipeline.map((each) => `range $k, $x := ${each}`),
  pipeline.map((each) => `with ${each}`),
  pipeline.map((each) => `$x := ${each}`),
  pipeline.map((each) => `$x = print $x ${each}`),
  fc.constantFrom(
    'else',
    'end',
    'end',
    'end',
    'else if .A',
    '/* a */',
    '- .A -',
    '/* "',
    '"',
    '`',
    'define "x"',
    '$x',
    '.',
  ),
)

/** Places in a document, mostly left open: the next part lands there. */
const PLACES = [
  ...[
    '<p>',
    '</p>',
    '<a href="',
    '<a href=',
    "<a href='",
    '<a href="https://a/?u=',
    '<img src="',
    '<p title="',
    '<p title=',
  ],
  ...[
    '<p style="color: ',
    '<p onclick="f(',
    '<p onclick="f(\'',
    '<script>',
    '<script>a = ',
    "<script>a = '",
    '</script>',
  ],
  ...[
    '<style>',
    '</style>',
    '<!-- ',
    ' -->',
    ' --!>',
    '<!--[if mso]>',
    '<![endif]-->',
    '<',
    '<h',
    '<p ',
    '<p data-',
    '">',
    "'>",
    '>',
  ],
  ...[
    '" ',
    "' ",
    ' ',
    '=',
    '/',
    '//',
    '/* ',
    '*/ ',
    '`',
    '\n',
    '<textarea>',
    '</textarea>',
    '<title>',
    '<!doctype html>',
    '<a href="java',
  ],
  ...[
    '<meta http-equiv="refresh" content="',
    '<iframe srcdoc="',
    '<svg><a xlink:href="',
    'text',
    'é',
    '&amp;',
    '}}',
    '{',
    '{{',
    '}',
  ],
]
const template = fc
  .array(
    fc.oneof(
      { weight: 5, arbitrary: fc.constantFrom(...PLACES) },
      { weight: 5, arbitrary: action.map((each) => `{{ ${each} }}`) },
      fc.string({ unit: 'binary', maxLength: 8 }).filter((text) => !text.includes(MARK)),
    ),
    { maxLength: 14 },
  )
  .map((parts) => parts.join(''))

/** Runs it to its end or throws: a loop without end would otherwise stop the test that looks for it. */
const within = (() => {
  const box: { run?: () => unknown } = createContext({})
  const script = new Script('run()')
  return <Result>(run: () => Result): Result => {
    box.run = run
    return script.runInContext(box, { timeout: PATIENCE_MS }) as Result
  }
})()

/** Renders a template; undefined if it is refused with an error for its author. */
function rendered(source: string, values: TemplateVariables, mode: 'html' | 'text'): string | undefined {
  try {
    return within(() => renderTemplate(compileTemplate(source, mode), values))
  } catch (error) {
    if (error instanceof TemplateError) return undefined
    throw error
  }
}

/** A value that came out as it went in, where that does harm wherever it stands. */
const ESCAPED = new RegExp(`<[/!-]*${MARK}|(?<!\\\\)["']${MARK}|--!?>${MARK}`)
test(
  'any template ends, and is rendered or refused with a TemplateError',
  () => {
    let made = 0
    const property = fc.property(template, variables, fc.constantFrom('html', 'text'), (source, values, mode) => {
      if (rendered(source, values, mode) !== undefined) made++
    })
    fc.assert(property, { seed: HOSTILE_SEED, numRuns: TEMPLATES })
    // Neither templates that are all refused nor ones that are all well would show anything.
    expect(made).toBeGreaterThan(TEMPLATES / 10)
    expect(made).toBeLessThan((TEMPLATES * 9) / 10)
  },
  TEST_WITHIN_MS,
)

test(
  'any value comes out escaped or is refused, wherever in the document it stands',
  () => {
    // All of these are rendered: places, and values without anything around them.
    const whole = fc
      .array(
        fc.oneof(
          fc.constantFrom(...PLACES.filter((text) => !/[{}]/.test(text))),
          fc.constantFrom(
            '{{ .A }}',
            '{{ .B }}',
            '{{ .List }}',
            '{{ .Map }}',
            '{{ .A | urlquery }}',
            '{{ .A | html }}',
            '{{ .B | js }}',
          ),
          fc.constantFrom(
            '{{ printf "%q" .A }}',
            '{{ slice .A 1 }}',
            '{{ range $k, $x := .Map }}{{ $k }}{{ $x }}{{ end }}',
          ),
        ),
        { minLength: 1, maxLength: 8 },
      )
      .map((parts) => parts.join(''))
    const property = fc.property(whole, variables, (source, values) => {
      const html = rendered(source, values, 'html') ?? ''
      if (ESCAPED.test(html)) throw new Error(`${source}\nbecomes ${html}`)
    })
    fc.assert(property, { seed: HOSTILE_SEED, numRuns: TEMPLATES })
  },
  TEST_WITHIN_MS,
)

test(
  'a link made of any values leads to the web, to mail or to a number',
  () => {
    const beginning = fc.constantFrom(
      '<a href="',
      "<a href='",
      '<a href=',
      '<a href="java',
      '<img src=" ',
      '<svg><a xlink:href="',
    )
    const piece = fc.constantFrom(
      '{{ .A }}',
      '{{ .B }}',
      '{{ .List }}',
      '{{ print .A .B }}',
      '{{ .A | html }}',
      '{{ slice .A 1 }}',
    )
    const link = fc
      .tuple(beginning, fc.array(piece, { minLength: 1, maxLength: 3 }))
      .map(([open, parts]) => open + parts.join(''))
    const property = fc.property(link, variables, (source, values) => {
      const html = rendered(source, values, 'html') ?? ''
      const written = html.slice(html.indexOf('=') + 1).replace(/^["']/, '')
      // Browsers ignore blanks and controls, and resolve references.
      const [start = ''] = written.replaceAll(/&#(\d+);/g, (_all, code) => String.fromCharCode(code)).split(/[/?#]/, 1)
      const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(start.replaceAll(/[\0-\x20]/g, ''))?.[1]?.toLowerCase()
      if (scheme !== undefined && !['http', 'https', 'mailto', 'tel'].includes(scheme))
        throw new Error(`${source}\nbecomes ${html}`)
    })
    fc.assert(property, { seed: HOSTILE_SEED, numRuns: TEMPLATES })
  },
  TEST_WITHIN_MS,
)
