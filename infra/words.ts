// The rules of docs/style.md "Words" that a program can hold, over comments, texts in the sources, names of tests and
// Markdown. `node infra/words.ts [path …]` prints each place that breaks one. Without a path it reads the whole
// repository.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { extname, resolve } from 'node:path'

interface Text {
  line: number
  text: string
}

interface Rule {
  pattern: RegExp
  instead: string
}

/** Longest sentence of a comment or a document, in words. A list item and a cell of a table end one too. */
const LONGEST_SENTENCE = 25

const RULES: Rule[] = [
  {
    pattern: /\b(whoever|whomever|nobody|somebody|anybody|everybody|no one|someone)\b/i,
    instead: 'name the user, caller, worker …',
  },
  {
    pattern:
      /(^|[.:;!(] ?|\b(of|to|by|for|from|with|than|as|whether|if|and|or|but|only|that|those|(tell|let|say|decide|settle|change|know|show)s?) )who\b/i,
    instead: 'name the user, caller, worker …',
  },
  {
    pattern: /(^|[.;!(] ?|\b(of|to|by|for|from|with|than|in|on|at|into|after|before|until) )what (?!if\b)[^?]*$/i,
    instead: 'a noun',
  },
  { pattern: /\bfar sides?\b/i, instead: 'upstream' },
  { pattern: /\b(tell|tells|told)\b/i, instead: 'reveal, report, say' },
  { pattern: /\b(mend|mends|mended|mending)\b/i, instead: 'repair, fix' },
  { pattern: /\blook(s|ed|ing)? at\b/i, instead: 'check, read' },
  { pattern: /\b(wish|wishes|wished)\b/i, instead: 'request' },
  { pattern: /\b(tries|misses)\b(?! (to|again|once|for|its|his|the|a)\b)/i, instead: 'attempts, failed attempts' },
  { pattern: /\b(goes|go|gone|went|going) away\b/i, instead: 'disconnect, close, be unavailable' },
  { pattern: /\b(is|are|was|be) over\b(?! (http|tls|the|a|an|its|https|\d))/i, instead: 'expire, end' },
  { pattern: /\b(makes?|making|made|no|enough) room\b/i, instead: 'free space, capacity' },
]
/** First words of a comment: it begins with the noun or the verb of what it describes. */
const FIRST_WORD = /^(of|by|for|to|in|with|as|else|from|on|at|what|who|how|whose)\b/i

const withoutCode = (text: string) =>
  text.replace(
    /`[^`]*`|https?:\/\/[^\s)]*[^\s).,;:]|"[^"]*"|\b[\w./-]+\.(ts|md|json|yaml|yml|mjs|store|routes)\b/g,
    '_',
  )

export function brokenRules(path: string, source: string): string[] {
  const isTest = /\.test\.ts$|\/(test|testing|bench|faults)\//.test(path)
  const isMarkdown = extname(path) === '.md'
  const comments = isMarkdown ? [] : commentsOf(source, COMMENTS[extname(path)] ?? SLASHES)
  const hasLiterals = /\.(ts|js|mjs)$/.test(path)
  const texts = isMarkdown ? paragraphsOf(source) : [...comments, ...(hasLiterals ? literalsOf(source, isTest) : [])]
  return [
    ...texts.flatMap(({ line, text }) =>
      RULES.flatMap(({ pattern, instead }) => {
        const found = clausesOf(withoutCode(text)).flatMap((clause) => pattern.exec(clause)?.[0] ?? [])[0]
        return found === undefined ? [] : [`${path}:${line}: "${found.trim()}": ${instead}`]
      }),
    ),
    ...comments.flatMap(({ line, text }) => {
      const first = FIRST_WORD.exec(text)?.[0]
      return first ? [`${path}:${line}: a comment begins with "${first}": begin with the noun or the verb`] : []
    }),
    ...[...comments, ...(isMarkdown ? texts : [])].flatMap(({ line, text }) =>
      sentencesOf(withoutCode(text))
        .map((sentence) => sentence.split(/\s+/).filter((word) => /\w/.test(word)).length)
        .filter((words) => words > LONGEST_SENTENCE)
        .map((words) => `${path}:${line}: a sentence of ${words} words: at most ${LONGEST_SENTENCE}`),
    ),
  ]
}

const sentencesOf = (text: string) => text.split(/(?<=[.!?][*)]*)\s+|\s[|·]\s/)
const clausesOf = (text: string) => text.split(/(?<=[.!?][*)]*)\s+|\s[|·]\s|;\s|:\s/)

interface CommentStyle {
  line: RegExp
  hasBlocks?: boolean
}

const SLASHES: CommentStyle = { line: /^\/\/+/, hasBlocks: true }
const HASHES: CommentStyle = { line: /^#+/ }
const COMMENTS: Record<string, CommentStyle> = {
  '.sql': { line: /^--+/ },
  ...{ '.yaml': HASHES, '.yml': HASHES, '.sh': HASHES, '': HASHES },
}

/** Comments that stand on lines of their own, each as one text. */
function commentsOf(source: string, style: CommentStyle): Text[] {
  const found: Text[] = []
  let open: Text | undefined
  let inBlock = false
  for (const [index, raw] of source.split('\n').entries()) {
    const line = raw.trim()
    const begins = style.hasBlocks === true && line.startsWith('/*')
    if (!inBlock && !begins && !style.line.test(line)) {
      open = undefined
      continue
    }
    const text = line
      .replace(style.line, '')
      .replace(/^\/\*+|^\*\/$|^\* ?|\*\/$/g, '')
      .trim()
    const isDirective = /^(biome-ignore|@(ts-|param|property|returns|template|type)|#|eslint|v8 )/.test(text)
    if (begins || !open) {
      open = { line: index + 1, text: '' }
      found.push(open)
    }
    if (!isDirective) open.text = `${open.text} ${text.replace(/^[-*] /, '| ')}`.trim()
    inBlock = (inBlock || begins) && !line.endsWith('*/')
    if (line.endsWith('*/')) open = undefined
  }
  return found.filter(({ text }) => text !== '')
}

const LITERAL = /'((?:[^'\\\n]|\\.)+)'/g
const TEST_NAME = /\b(?:test|it|describe)(?:\.\w+)*(?:\([^()]*\))?\(\s*'((?:[^'\\\n]|\\.)+)'/g

/** Texts of three words and more: errors, log lines, meanings, descriptions; of a test only its name. */
function literalsOf(source: string, isTest: boolean): Text[] {
  return source.split('\n').flatMap((line, index) => {
    if (/^\s*(\/\/|\*|import )/.test(line)) return []
    const texts = [...line.matchAll(isTest ? TEST_NAME : LITERAL)].map(([, text = '']) => text)
    return texts.filter((text) => text.split(' ').length >= 3).map((text) => ({ line: index + 1, text }))
  })
}

/** Paragraphs, list items and table rows; without fenced code. */
function paragraphsOf(source: string): Text[] {
  const found: Text[] = []
  let open: Text | undefined
  let isCode = false
  for (const [index, line] of source.split('\n').entries()) {
    if (/^\s*```/.test(line)) isCode = !isCode
    if (isCode || /^\s*(```|$|#|<|\|| {4})/.test(line)) {
      open = undefined
      if (!isCode && line.startsWith('|')) found.push({ line: index + 1, text: line.replaceAll('|', ' | ') })
      continue
    }
    if (!open || /^\s*([-*]|\d+\.) /.test(line)) {
      open = { line: index + 1, text: '' }
      found.push(open)
    }
    open.text = `${open.text} ${line.trim().replace(/^([-*]|\d+\.) /, '')}`.trim()
  }
  return found
}

const READ = /\.(ts|js|mjs|css|sql|md|sh|ya?ml)$|^\.ci\/\w+$/

/** Pages that quote the words they rule out, and tables of values. */
const EXCEPT = /^(infra\/words(\.test)?\.ts|docs\/style\.md|docs\/reference\/\w+\/configuration\.md|pnpm-lock\.yaml)$/

if (import.meta.main) {
  const root = resolve(import.meta.dirname, '..')
  const asked = process.argv.slice(2)
  const list = ['ls-files', '--cached', '--others', '--exclude-standard', '--', ...(asked.length > 0 ? asked : ['.'])]
  const paths = execFileSync('git', list, { cwd: root, encoding: 'utf8' }).split('\n')
  const files = paths.filter((path) => READ.test(path) && !EXCEPT.test(path) && existsSync(resolve(root, path)))
  const broken = files.flatMap((path) => brokenRules(path, readFileSync(resolve(root, path), 'utf8')))
  for (const each of broken) process.stdout.write(`${each}\n`)
  if (broken.length > 0) process.exitCode = 1
}
