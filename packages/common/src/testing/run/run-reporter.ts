// Output of a test run: files, progress, each failure with the command that runs it alone, skipped tests with reasons,
// and counts. A green run fits one screen.
import { relative } from 'node:path'
import type { RunnerTestFile as File, TestCase, TestModule, TestSpecification } from 'vitest/node'
import { DefaultReporter } from 'vitest/node'
import { NOT_INSTALLABLE } from './needs.ts'

/** Interval of progress lines outside a terminal, which shows progress itself. */
const PROGRESS_EVERY_MS = 30_000

export default class RunReporter extends DefaultReporter {
  #fileCount = 0
  #endedFiles = 0
  #endedTests = 0
  #lastProgress = 0
  readonly #skipped: TestCase[] = []

  override onTestRunStart(specifications: readonly TestSpecification[]): void {
    super.onTestRunStart(specifications)
    const projects = new Set(specifications.map(({ project }) => project.name))
    this.#fileCount = specifications.length
    this.#lastProgress = this.start
    this.log(`${this.#fileCount} files of ${[...projects].sort().join(', ')}\n`)
  }

  override onTestCaseResult(test: TestCase): void {
    super.onTestCaseResult(test)
    this.#endedTests++
    const { state } = test.result()
    const isLeftOut = this.ctx.config.testNamePattern !== undefined
    if (state === 'skipped' && !isLeftOut) this.#skipped.push(test)
    if (state === 'failed') this.log(` FAILED ${test.module.relativeModuleId} > ${test.fullName}`)
  }

  override onTestModuleEnd(module: TestModule): void {
    super.onTestModuleEnd(module)
    this.#endedFiles++
    const now = performance.now()
    if (this.isTTY || now - this.#lastProgress < PROGRESS_EVERY_MS) return
    this.#lastProgress = now
    const seconds = Math.round((now - this.start) / 1000)
    this.log(` ${this.#endedFiles} of ${this.#fileCount} files, ${this.#endedTests} tests, ${seconds} s`)
  }

  /** Prints the tests of a single file; for many files that would be hundreds of lines. */
  protected override printTestModule(module: TestModule): void {
    if (this.#fileCount === 1) super.printTestModule(module)
  }

  override reportSummary(files: File[], errors: unknown[]): void {
    this.#reportSkipped()
    super.reportSummary(files, errors)
    const failed = this.ctx.state.getTestModules().flatMap((module) => [...module.children.allTests('failed')])
    const commands = [...new Set(failed.map((test) => `  ${commandFor(test)}\n`))].join('')
    const { shuffle } = this.ctx.config.sequence
    if (failed.length > 0) this.log(`${shuffle ? 'Their files in this order' : 'Each failed test alone'}:\n${commands}`)
  }

  #reportSkipped() {
    if (this.#skipped.length === 0) return
    const byReason = Map.groupBy(this.#skipped, reasonOf)
    this.log('\nSkipped:')
    for (const [reason, tests] of byReason) this.log(`  ${tests.length} × ${reason}`)
    if (!process.env.CI || this.#skipped.every(isExcused)) return
    this.log('With CI set a skipped test is a failure: install what is missing.')
    process.exitCode = 1
  }
}

/** Reason of a skip: the test's own note, or the need of its tag. */
function reasonOf(test: TestCase): string {
  const result = test.result()
  if (result.state === 'skipped' && result.note) return result.note
  return (
    skippingTags(test)
      .map(({ description }) => description)
      .join('; ') || `no reason given: ${test.fullName}`
  )
}

const skippingTags = (test: TestCase) =>
  test.project.config.tags.filter(({ name, skip }) => skip && test.tags.includes(name))

/** Whether no installation could bring the test's missing needs. */
function isExcused(test: TestCase): boolean {
  const tags = skippingTags(test)
  return tags.length > 0 && tags.every(({ name }) => NOT_INSTALLABLE.includes(name))
}

/** Variables that change the inputs of tests. */
const INPUTS = ['HOSTILE_RUNS', 'HOSTILE_SEED', 'MEDIA_MUTANTS', 'MEDIA_MUTANTS_SEED']

/**
 * Command that runs this test alone, from any folder of the repository; if tests are shuffled, all tests of its file in
 * this order.
 */
function commandFor(test: TestCase): string {
  const pattern = `^${test.fullName.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`
  const quoted = `'${pattern.replaceAll("'", "'\\''")}'`
  const { root, sequence } = test.project.vitest.config
  const which = sequence.shuffle ? '' : ` -t ${quoted}`
  const folder = root === process.cwd() ? '' : ` -C ${relative(process.cwd(), root)}`
  const seed = process.env.TEST_SHAKEN
  const order = sequence.shuffle ? ` --sequence.shuffle.tests --sequence.seed ${sequence.seed}` : ''
  const run = seed ? `test:shaken ${seed}` : `exec vitest run${order}`
  const inputs = INPUTS.flatMap((name) => (process.env[name] ? [`${name}=${process.env[name]} `] : []))
  const file = relative(root, test.module.moduleId)
  return `${inputs.join('')}npx -y pnpm@12${folder} ${run} --project ${test.project.name} ${file}${which}`
}
