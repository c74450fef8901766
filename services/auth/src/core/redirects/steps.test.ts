import { HOSTILE_SEED } from '@services/common/testing/http/hostile-run'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Step, takesAll } from './steps.ts'

const one = (text: string): Step => ({ takes: (character) => character === text, repeats: false })
const anyOf = (characters: string, repeats: boolean): Step => ({
  takes: (character) => characters.includes(character),
  repeats,
})

/** Steps over two letters and a dot, as patterns have them: a `*` stops at the dot, a `**` does not. */
const step = fc.constantFrom(one('a'), one('b'), one('.'), anyOf('ab', true), anyOf('ab.', true), anyOf('ab', false))
const text = fc.string({ unit: fc.constantFrom('a', 'b', '.'), maxLength: 12 })

/** Backtracking matcher. */
function backtracks([step, ...others]: readonly Step[], text: string): boolean {
  if (!step) return text === ''
  if (step.repeats && backtracks(others, text)) return true
  return (
    text !== '' && step.takes(text[0] as string) && backtracks(step.repeats ? [step, ...others] : others, text.slice(1))
  )
}

/** Counts the comparisons of the steps. */
function counted(steps: readonly Step[]) {
  let comparisons = 0
  const counting = steps.map((step) => ({
    ...step,
    takes: (character: string) => {
      comparisons++
      return step.takes(character)
    },
  }))
  return { counting, comparisons: () => comparisons }
}

test('steps match the same texts as a backtracking matcher', () => {
  const property = fc.property(fc.array(step, { maxLength: 8 }), text, (steps, text) => {
    expect(takesAll(steps, text)).toBe(backtracks(steps, text))
  })
  fc.assert(property, { seed: HOSTILE_SEED, numRuns: 3000 })
})

test('a character costs at most one comparison for each step', () => {
  const texts = fc.string({ unit: fc.constantFrom('a', 'b', '.'), maxLength: 60 })
  const property = fc.property(fc.array(step, { maxLength: 20 }), texts, (steps, text) => {
    const { counting, comparisons } = counted(steps)
    takesAll(counting, text)
    expect(comparisons()).toBeLessThanOrEqual(steps.length * text.length)
  })
  fc.assert(property, { seed: HOSTILE_SEED, numRuns: 3000 })
})

test('the longest target costs a pattern of wildcards at most one comparison for each step and character', () => {
  const { counting, comparisons } = counted(
    Array.from({ length: 500 }, (_, index) => (index % 2 ? one('a') : anyOf('ab.', true))),
  )
  expect(takesAll(counting, `${'a'.repeat(2047)}b`)).toBe(false)
  expect(comparisons()).toBeGreaterThan(2048)
  expect(comparisons()).toBeLessThanOrEqual(500 * 2048)
})
