// Performs a Dockerfile in directories: one per stage, each a copy of what it is made from.
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { contextFiles } from './build-context.ts'
import { commandOf, expand, type Instruction, pairsOf, parseDockerfile, type Stage } from './dockerfile.ts'
import { baseRoot, forgetMachine, machineSettings, rootArgs } from './machine.ts'

export interface BuildOptions {
  /** The root of the repository, which is the context. */
  repository: string
  dockerfile: string
  /** Values of --build-arg. */
  args: Record<string, string>
  environment: Record<string, string | undefined>
  /** For roots and caches, which are kept. */
  folder: string
  log: (line: string) => void
}

/** What an engine would keep beside the files. */
export interface Image {
  root: string
  /** The directory that the last stage was copied from. */
  base: string
  env: Record<string, string>
  labels: Record<string, string>
  workdir: string
  user: string
  stopSignal: string
  entrypoint: string[]
  command: string[]
  healthcheck: string[]
  ports: number[]
  /** Bytes that COPY --from brought. */
  appBytes: number
}

type Building = Image & { args: Record<string, string> }

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export function buildRoot(options: BuildOptions): Image {
  const stages = parseDockerfile(readFileSync(join(options.repository, options.dockerfile), 'utf8'))
  const built = new Map<string, Building>()
  let last: Building | undefined
  for (const stage of stages) {
    last = buildStage(stage, built, options)
    built.set(stage.name, last)
  }
  if (!last) throw new Error(`${options.dockerfile} has no stage`)
  return last
}

function buildStage(stage: Stage, built: Map<string, Building>, options: BuildOptions): Building {
  const below = built.get(stage.from)
  const base = below?.root ?? baseRoot(stage.from, options.repository, options.folder)
  // A stage that only names another one is not copied.
  const root =
    stage.instructions.length === 0 ? base : join(options.folder, `${basename(options.dockerfile)}-${stage.name}`)
  options.log(`FROM ${stage.from.slice(0, 40)} → ${stage.name}`)
  if (root !== base) {
    rmSync(root, { recursive: true, force: true })
    execFileSync('cp', ['--archive', '--reflink=auto', base, root])
  }
  const building: Building = below
    ? { ...structuredClone(below), args: {}, root, base }
    : { ...EMPTY, env: { PATH }, labels: {}, args: {}, root, base }
  for (const instruction of stage.instructions) perform(instruction, building, built, options)
  return building
}

const EMPTY = {
  ...{ workdir: '/', user: '0:0', stopSignal: 'SIGTERM', entrypoint: [], command: [], healthcheck: [] },
  ...{ ports: [], appBytes: 0 },
}

function perform(step: Instruction, image: Building, built: Map<string, Building>, options: BuildOptions): void {
  const value = (text: string) => expand(text, { ...image.args, ...image.env })
  const { text } = step
  switch (step.keyword) {
    case 'ARG':
      for (const [name, byDefault] of pairsOf(text)) image.args[name] = options.args[name] ?? value(byDefault ?? '')
      return
    case 'ENV':
      for (const [name, given] of pairsOf(text)) image.env[name] = value(given ?? '')
      return
    case 'LABEL':
      for (const [name, given] of pairsOf(text)) image.labels[name] = value(given ?? '')
      return
    case 'WORKDIR':
      image.workdir = resolve(image.workdir, value(text))
      mkdirSync(join(image.root, image.workdir), { recursive: true })
      return
    case 'USER':
      image.user = value(text)
      return
    case 'STOPSIGNAL':
      image.stopSignal = value(text)
      return
    case 'ENTRYPOINT':
      image.entrypoint = commandOf(text)
      return
    case 'CMD':
      image.command = commandOf(text)
      return
    case 'HEALTHCHECK': {
      const [, command = ''] = /^CMD\s+(.*)$/.exec(text) ?? []
      image.healthcheck = commandOf(command)
      return
    }
    case 'EXPOSE':
      image.ports = text.split(/\s+/).map(Number)
      return
    case 'COPY':
      copy(step, image, built, options)
      return
    case 'RUN':
      execute(step, image, options)
      return
  }
}

function copy(
  { text, flags }: Instruction,
  image: Building,
  built: Map<string, Building>,
  options: BuildOptions,
): void {
  const operands = text.split(/\s+/)
  const destination = operands.pop() as string
  const target = join(image.root, resolve(image.workdir, destination))
  if (flags.from) {
    const source = built.get(flags.from)
    if (!source) throw new Error(`COPY --from=${flags.from}: no stage before this one has that name`)
    for (const operand of operands) {
      mkdirSync(dirname(target), { recursive: true })
      execFileSync('cp', ['--archive', '--no-target-directory', join(source.root, operand), target])
      image.appBytes += sizeOf(target)
    }
    return
  }
  for (const operand of operands) {
    const folder = lstatSync(join(options.repository, operand)).isDirectory()
    for (const file of contextFiles(options.repository, operand)) {
      // The content of a folder goes into the destination, a file goes into it where it ends with a slash.
      const inside = folder
        ? file.slice(operand.replace(/\/?$/, '/').length)
        : destination.endsWith('/')
          ? basename(file)
          : ''
      cpSync(join(options.repository, file), join(target, inside))
    }
  }
}

function execute({ text, flags, line }: Instruction, image: Building, options: BuildOptions): void {
  const machine = machineSettings(options.environment, join(options.folder, 'machine'))
  const started = performance.now()
  const { status, stdout, stderr } = spawnSync(
    'bwrap',
    [
      ...rootArgs(image.root),
      ...machine.args,
      ...cacheArgs(flags.mount, options.folder),
      ...['--chdir', image.workdir],
      ...Object.entries({ HOME: '/root', ...image.args, ...image.env, ...machine.env }).flatMap((pair) => [
        '--setenv',
        ...pair,
      ]),
      ...['--', '/bin/sh', '-c', text],
    ],
    { encoding: 'utf8', maxBuffer: 64 * 1024 ** 2 },
  )
  forgetMachine(image.root)
  if (flags.mount) rmSync(join(image.root, targetOf(flags.mount)), { recursive: true, force: true })
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  options.log(
    `  line ${String(line).padStart(2)}  ${seconds.padStart(5)} s  RUN ${text.slice(0, 80).replaceAll(/\s+/g, ' ')}`,
  )
  if (status !== 0)
    throw new Error(`line ${line} ended with ${status}:\n${stdout.slice(-3000)}\n${stderr.slice(-3000)}`)
}

const targetOf = (mount: string) => /(?:^|,)target=([^,]+)/.exec(mount)?.[1] ?? ''

/** `type=cache,id=…,target=…`: a directory that outlives the build. */
function cacheArgs(mount: string | undefined, folder: string): string[] {
  if (!mount) return []
  const id = /(?:^|,)id=([^,]+)/.exec(mount)?.[1]
  if (!mount.startsWith('type=cache,') || !id) throw new Error(`RUN --mount=${mount} is not known here`)
  const cache = join(folder, 'caches', id)
  mkdirSync(cache, { recursive: true })
  return ['--bind', cache, targetOf(mount)]
}

/** As `du` counts: blocks on the disk, hard links once. */
export const sizeOf = (path: string): number =>
  existsSync(path) ? Number(execFileSync('du', ['-sxB1', path], { encoding: 'utf8' }).split('\t')[0]) : 0

/** All files below a directory, by their paths from it; links are not followed. */
export function walk(root: string, folder = ''): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? [path, ...walk(root, path)] : [path]
  })
}
