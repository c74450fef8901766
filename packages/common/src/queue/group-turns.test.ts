import { expect, test } from 'vitest'
import { createGroupTurns, LATEST_TURN, MAX_GROUPS } from './group-turns.ts'

test('each job of a group has a later turn, until the group has been quiet as long as it was busy', () => {
  let ms = 0
  const turns = createGroupTurns(() => ms)
  expect(Array.from({ length: 5 }, () => turns.next('crowd'))).toEqual([0, 1, 2, 3, 4])
  expect(turns.next('newcomer')).toBe(0)
  ms += 2_000
  expect(turns.next('crowd')).toBe(3)
  ms += 4_000
  expect(turns.next('crowd')).toBe(0)
})

test('only the latest groups are remembered: one in use keeps its turn, however many others come', () => {
  const turns = createGroupTurns(() => 0)
  const others = (count: number, name: string) => {
    for (let i = 0; i < count; i++) turns.next(`${name} ${i}`)
  }
  turns.next('crowd')
  others(MAX_GROUPS - 1, 'first')
  expect(turns.next('crowd')).toBe(1)
  others(MAX_GROUPS - 1, 'second')
  expect(turns.next('crowd')).toBe(2)
  others(MAX_GROUPS, 'third')
  expect(turns.next('crowd')).toBe(0)
})

test('a group that sends a job a second always has the first turn, and no turn is later than the last', () => {
  let ms = 0
  const turns = createGroupTurns(() => ms)
  for (let i = 0; i < 10; i++) {
    expect(turns.next('steady')).toBe(0)
    ms += 1_000
  }
  for (let i = 0; i < LATEST_TURN; i++) turns.next('endless')
  expect([turns.next('endless'), turns.next('endless')]).toEqual([LATEST_TURN, LATEST_TURN])
})
