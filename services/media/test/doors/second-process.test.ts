// Two processes on one database: a change by one shows in the answers of the other. Pages and links follow at once; files that the other has just
// served follow within the second for which it knows them (known-files.ts, docs/security/known-gaps.md).
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { byDoor, doors, fileDoors, pageDoors } from './doors.ts'
import { knockAtAll, pick, statusOf } from './knock.ts'
import { openStage, type Stage, type StagedClip, type Step } from './stage.ts'
import type { Visitor } from './states.ts'

let stage: Stage<'second'>
beforeAll(async () => {
  stage = await openStage({}, { second: {} })
  await stage.makeVariants()
})
afterAll(() => stage.close())

/** Time for which a process knows a file. */
const KNOWN_MS = 1_000

const all = (asked: typeof doors, status: number) => byDoor(asked, () => status)
const own = (asked: typeof doors) => byDoor(asked, ({ shown }) => shown.ready)

const statusesOf = async (process: 'service' | 'second', asked: typeof doors, it: StagedClip, visitor: Visitor) =>
  pick(
    await knockAtAll(process === 'service' ? stage.service : stage.others.second, stage, asked, { it, visitor }),
    statusOf,
  )

/** Lets the second pass without waiting for it. */
function passKnownTime(): void {
  const now = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => now() + KNOWN_MS)
}

const changes: [step: Step, answer: number][] = [
  ['private', 404],
  ['hidden', 451],
  ['deleted', 410],
  ['expired', 410],
]

describe.for(changes)('a clip that becomes %s in one process', ([step, answer]) => {
  test('answers so at once there, at once at pages of the other, and within a second at its files', async () => {
    const it = await stage.make('ready', ['public'])
    // Both know the files when the clip changes.
    for (const process of ['service', 'second'] as const) {
      expect(await statusesOf(process, doors, it, 'no link')).toEqual(own(doors))
    }
    await stage.steps[step](it)
    expect(await statusesOf('service', doors, it, 'no link')).toEqual(all(doors, answer))
    expect(await statusesOf('second', pageDoors, it, 'no link')).toEqual(all(pageDoors, answer))
    passKnownTime()
    try {
      expect(await statusesOf('second', fileDoors, it, 'no link')).toEqual(all(fileDoors, answer))
    } finally {
      vi.restoreAllMocks()
    }
  })
})

test('an expired clip is gone at the second in a process that knows its files', async () => {
  const it = await stage.make('ready', ['public'])
  const sent = {
    body: JSON.stringify({ expires_in: '1m' }),
    headers: { token: stage.service.token, 'content-type': 'application/json' },
  }
  await stage.service.call('PATCH', `/media/${it.id}`, sent)
  expect(await statusesOf('second', doors, it, 'no link')).toEqual(own(doors))
  stage.others.second.clock.advance({ seconds: 60 })
  expect(await statusesOf('second', doors, it, 'no link')).toEqual(all(doors, 410))
})

test('links that are ended, and a private clip that is hidden or made public, answer so at once in the other process', async () => {
  const it = await stage.make('ready', ['private'])
  expect(await statusesOf('second', doors, it, 'link')).toEqual(own(doors))
  await stage.steps.hidden(it)
  expect(await statusesOf('second', doors, it, 'link')).toEqual(all(doors, 451))
  await stage.steps['shown again'](it)
  await stage.steps['links ended'](it)
  expect(await statusesOf('second', doors, it, 'link')).toEqual(all(doors, 404))
  await stage.steps.public(it)
  expect(await statusesOf('second', doors, it, 'no link')).toEqual(own(doors))
})
