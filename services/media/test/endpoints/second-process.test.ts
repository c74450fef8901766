// Two processes on one database: a change by one shows in the answers of the other. Pages and links follow at once;
// files that the other has just served follow within the second for which it knows them (known-files.ts,
// docs/security/known-gaps.md).
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { byEndpoint, type Endpoint, endpoints, fileEndpoints, openTo, pageEndpoints } from './endpoints.ts'
import { pick, requestAll, statusOf } from './request-endpoints.ts'
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

const linked = openTo('link', endpoints)
const all = (of: readonly Endpoint[], status: number) => byEndpoint(of, () => status)
const own = (of: readonly Endpoint[]) => byEndpoint(of, ({ shown }) => shown.ready)

const statusesOf = async (process: 'service' | 'second', of: readonly Endpoint[], it: StagedClip, visitor: Visitor) =>
  pick(
    await requestAll(process === 'service' ? stage.service : stage.others.second, stage, of, { it, visitor }),
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
      expect(await statusesOf(process, endpoints, it, 'no link')).toEqual(own(endpoints))
    }
    await stage.steps[step](it)
    expect(await statusesOf('service', endpoints, it, 'no link')).toEqual(all(endpoints, answer))
    expect(await statusesOf('second', pageEndpoints, it, 'no link')).toEqual(all(pageEndpoints, answer))
    passKnownTime()
    try {
      expect(await statusesOf('second', fileEndpoints, it, 'no link')).toEqual(all(fileEndpoints, answer))
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
  expect(await statusesOf('second', endpoints, it, 'no link')).toEqual(own(endpoints))
  stage.others.second.clock.advance({ seconds: 60 })
  expect(await statusesOf('second', endpoints, it, 'no link')).toEqual(all(endpoints, 410))
})

test('links that are ended, and a private clip that is hidden or made public, answer so at once in the other process', async () => {
  const it = await stage.make('ready', ['private'])
  expect(await statusesOf('second', linked, it, 'link')).toEqual(own(linked))
  await stage.steps.hidden(it)
  expect(await statusesOf('second', linked, it, 'link')).toEqual(all(linked, 451))
  await stage.steps['shown again'](it)
  await stage.steps['links ended'](it)
  expect(await statusesOf('second', linked, it, 'link')).toEqual(all(linked, 404))
  await stage.steps.public(it)
  expect(await statusesOf('second', endpoints, it, 'no link')).toEqual(own(endpoints))
})
