// A parser of our Dockerfiles for dockerfiles.test.ts; it refuses syntax that ours do not use.

export interface Instruction {
  keyword: string
  /** Flags of RUN and COPY, `--name=value`. */
  flags: Record<string, string>
  /** Arguments, in one line. */
  text: string
  line: number
}

export interface Stage {
  name: string
  /** Image or earlier stage. */
  from: string
  instructions: Instruction[]
}

const KEYWORDS = new Set(
  'ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL RUN STOPSIGNAL USER WORKDIR'.split(' '),
)

/** Throws with the line of an unknown instruction. */
export function parseDockerfile(text: string): Stage[] {
  const stages: Stage[] = []
  for (const instruction of readInstructions(text)) {
    if (instruction.keyword === 'FROM') {
      const [, from = '', name = String(stages.length)] = /^(\S+)(?:\s+AS\s+(\S+))?$/.exec(instruction.text) ?? []
      if (!from) throw new Error(`line ${instruction.line}: FROM ${instruction.text}`)
      stages.push({ name, from, instructions: [] })
      continue
    }
    const stage = stages.at(-1)
    if (!stage) throw new Error(`line ${instruction.line}: ${instruction.keyword} before FROM`)
    stage.instructions.push(instruction)
  }
  return stages
}

/** Collects the instructions of a stage after those of its base stages, and the base image. */
export function lineage(stages: Stage[], name: string): { image: string; instructions: Instruction[] } {
  const stage = stages.find((each) => each.name === name)
  if (!stage) return { image: name, instructions: [] }
  const below = lineage(stages, stage.from)
  return { image: below.image, instructions: [...below.instructions, ...stage.instructions] }
}

function readInstructions(text: string): Instruction[] {
  const found: Instruction[] = []
  let pending = ''
  let begun = 0
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*#/.test(line) || (pending === '' && line.trim() === '')) continue
    if (pending === '') begun = index + 1
    pending += line.replace(/\\$/, ' ')
    if (line.endsWith('\\')) continue
    found.push(readInstruction(pending.trim(), begun))
    pending = ''
  }
  if (pending !== '') throw new Error(`line ${begun}: the last instruction does not end`)
  return found
}

function readInstruction(line: string, number: number): Instruction {
  const keyword = /^\S+/.exec(line)?.[0] ?? ''
  if (!KEYWORDS.has(keyword)) throw new Error(`line ${number}: ${keyword} is not supported here`)
  let text = line.slice(keyword.length).trim()
  const flags: Record<string, string> = {}
  for (let flag = /^--([a-z-]+)=(\S+)\s+/.exec(text); flag; flag = /^--([a-z-]+)=(\S+)\s+/.exec(text)) {
    flags[flag[1] as string] = flag[2] as string
    text = text.slice(flag[0].length)
  }
  return { keyword, flags, text, line: number }
}

/** Parses `A=1 B="two words"` of ENV, ARG and LABEL; ARG may omit the value. */
export function pairsOf(text: string): [name: string, value: string | undefined][] {
  return [...text.matchAll(/([\w.-]+)(?:=("(?:[^"\\]|\\.)*"|\S*))?(?:\s+|$)/g)].map(([, name = '', value]) => [
    name,
    value?.replace(/^"(.*)"$/, '$1'),
  ])
}
