import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../../../../..', import.meta.url))
const CONFIG = fileURLToPath(new URL('testdata/reporter.config.ts', import.meta.url))
const SCREEN_LINES = 24

async function vitest(args: string[], env: NodeJS.ProcessEnv = {}) {
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...args], {
    cwd: ROOT,
    env: { PATH, NODE_COMPILE_CACHE, CI: '', ...env },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const [code] = await once(child, 'close')
  return { code, output: stripVTControlCharacters(output) }
}

test('a green run fits one screen: files, skipped tests with reasons, counts and time', async () => {
  const { code, output } = await vitest(['--config', CONFIG, 'green', 'skipped'])
  expect(code).toBe(0)
  expect(output).toContain('2 files')
  expect(output).toMatch(/Tests +100 passed \| 2 skipped/)
  expect(output).toContain('1 × a program is missing: install it')
  expect(output).toContain('1 × the moon is not full')
  expect(output.trim().split('\n').length).toBeLessThanOrEqual(SCREEN_LINES)
})

test('with CI set a skipped test makes the run red', async () => {
  const { code, output } = await vitest(['--config', CONFIG, 'green', 'skipped'], { CI: 'true' })
  expect({ code, output }).toEqual({ code: 1, output: expect.stringContaining('a skipped test is a failure') })
})

test('but a test whose need cannot be installed does not', async () => {
  const { code, output } = await vitest(['--config', CONFIG, 'green', 'excused'], { CI: 'true' })
  expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining('1 × only root can do this') })
})

test('a failed test is listed with the command that runs it alone', async () => {
  const { code, output } = await vitest(['--config', CONFIG, 'green', 'red'])
  expect({ code, output }).toEqual({
    code: 1,
    output: expect.stringContaining('FAILED red.sample.ts > a group > does'),
  })
  const [, pattern] =
    /^ {2}npx -y pnpm@12 -C packages\/common\/src\/testing\/run\/testdata exec vitest run .* -t '(.*)'$/m.exec(
      output,
    ) ?? []
  const alone = await vitest(['--config', CONFIG, 'red', '-t', String(pattern).replaceAll("'\\''", "'")])
  expect(alone.output).toMatch(/Tests +1 failed \| 1 skipped/)
})

test('a shaken run shuffles the tests of a file by its seed; the command that repeats it repeats their order', async () => {
  expect(await vitest(['--config', CONFIG, 'in-place'])).toMatchObject({ code: 0 })
  const [first, second, other] = [
    await vitest(['--config', CONFIG, 'in-place'], { TEST_SHAKEN: '42' }),
    await vitest(['--config', CONFIG, 'in-place'], { TEST_SHAKEN: '42' }),
    await vitest(['--config', CONFIG, 'in-place', '--sequence.shuffle.tests', '--sequence.seed', '42']),
  ]
  const failed = ({ output }: { output: string }) => output.match(/^ FAILED .*$/gm)
  const commands = ({ output }: { output: string }) => output.match(/^ {2}npx .*$/gm)
  expect([first.code, failed(first)?.length]).toEqual([1, expect.any(Number)])
  for (const again of [second, other]) expect(failed(again)).toEqual(failed(first))
  expect(commands(first)).toEqual([expect.stringMatching(/ test:shaken 42 --project \S* ?in-place\.sample\.ts$/)])
  expect(commands(other)).toEqual([
    expect.stringMatching(/ run --sequence\.shuffle\.tests --sequence\.seed 42 --project \S* ?in-place\.sample\.ts$/),
  ])
})

test('a shaken run delays timers, sockets and programs, and changes nothing else', async () => {
  const { code, output } = await vitest(['--config', CONFIG, 'shaken'], { TEST_SHAKEN: '7' })
  expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(/Tests +7 passed/) })
})
