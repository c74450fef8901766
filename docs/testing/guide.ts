// A guide's fenced blocks: the source of the commands that tests run. A test takes every block, or the block is marked
// not-run. Running blocks: shell.ts. The services under them: global-setup.ts.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Block {
  /** Language after the fence: `sh`, `js`. */
  language: string
  /** The rest of that line: the name of a file, or `not-run`. */
  info: string
  text: string
  line: number
}

export const GUIDES = join(import.meta.dirname, '..')

/** Languages that no test runs: output, and that of a block without one. */
const NOT_COMMANDS = ['text', '']

export const readGuide = (name: string): string => readFileSync(join(GUIDES, name), 'utf8')

export function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = []
  let open: { language: string; info: string; line: number; lines: string[] } | undefined
  for (const [index, line] of markdown.split('\n').entries()) {
    if (!line.startsWith('```')) open?.lines.push(line)
    else if (open) {
      blocks.push({ ...open, text: `${open.lines.join('\n')}\n` })
      open = undefined
    } else {
      const [, language = '', info = ''] = /^```(\S*) ?(.*)$/.exec(line) ?? []
      open = { language, info, line: index + 1, lines: [] }
    }
  }
  return blocks
}

export const isToBeRun = ({ language, info }: Block) => info !== 'not-run' && !NOT_COMMANDS.includes(language)

/** The test's values by the guide's values. */
export type Substitutions = Record<string, string>

export interface Guide {
  /** Takes the first untaken block that contains this, with the test's values in place of the guide's. */
  take(holding: string, substitutions?: Substitutions): string
  /** Takes the block of this file. */
  file(name: string, substitutions?: Substitutions): string
  /** Marks a block that another, named test runs. */
  leave(holding: string, runBy: string): void
  /** First line of each runnable block that no test has taken. */
  untaken(): string[]
}

export function openGuide(name: string): Guide {
  const left = blocksOf(readGuide(name)).filter(isToBeRun)
  const take = (what: string, isIt: (block: Block) => boolean, substitutions: Substitutions = {}) => {
    const index = left.findIndex(isIt)
    const [block] = index === -1 ? [] : left.splice(index, 1)
    if (!block) throw new Error(`${name} has no block left with ${what}`)
    return substitute(block, substitutions)
  }
  const holds = (text: string) => (block: Block) => block.text.includes(text)
  return {
    take: (holding, substitutions) => take(holding, holds(holding), substitutions),
    file: (file, substitutions) => take(file, ({ info }) => info === file, substitutions),
    leave(holding, runBy) {
      readFileSync(join(GUIDES, '..', runBy))
      take(holding, holds(holding))
    },
    untaken: () => left.map(({ line, text }) => `line ${line}: ${text.split('\n', 1)[0]}`),
  }
}

/** Throws if the block lacks a value: the guide has changed and the test has not. */
function substitute({ text, line }: Block, substitutions: Substitutions): string {
  return Object.entries(substitutions).reduce((result, [from, to]) => {
    if (!result.includes(from)) throw new Error(`the block at line ${line} does not hold ${from}`)
    return result.replaceAll(from, to)
  }, text)
}
