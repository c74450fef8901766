import { expect, test } from 'vitest'
import { createGroupTurns, LATEST_TURN } from './group-turns.ts'

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
