// The endpoints that take a token. An owner and an admin see a clip in every state, and to any other token each clip is
// an unknown one.

import { type Receiver, startReceiver } from '@services/common/testing/http/receiver'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Answer } from '../service.ts'
import { comparable } from './request-endpoints.ts'
import { openStage, SECRET_TITLE, type Stage, sourceStates, UNKNOWN_ID } from './stage.ts'
import { allStates, type State, states } from './states.ts'

let stage: Stage
let receiver: Receiver
let hooks: Record<'admin' | 'stranger', string>

const jsonFor = (token: string) => ({ token, 'content-type': 'application/json' })

beforeAll(async () => {
  ;[stage, receiver] = await Promise.all([openStage(), startReceiver()])
  const register = async (token: string): Promise<string> => {
    const body = JSON.stringify({ url: receiver.url })
    const answer = await stage.service.call('POST', '/webhooks', { headers: jsonFor(token), body })
    return answer.body.success.id
  }
  hooks = { admin: await register(stage.admin), stranger: await register(stage.stranger) }
})
afterAll(async () => {
  await stage.close()
  receiver.close()
})

/** Every call about one clip that takes a token. */
const calls: [
  name: string,
  method: string,
  path: (id: string) => string,
  body?: object,
  headers?: Record<string, string>,
][] = [
  ['details', 'GET', (id) => `/media/${id}`],
  ['head of the details', 'HEAD', (id) => `/media/${id}`],
  ['events', 'GET', (id) => `/media/${id}/events`],
  ['change', 'PATCH', (id) => `/media/${id}`, { visibility: 'public' }],
  ['change that is refused', 'PATCH', (id) => `/media/${id}`, { expires_in: 'soon' }],
  ['links', 'POST', (id) => `/media/${id}/links`, {}],
  ['links that are refused', 'POST', (id) => `/media/${id}/links`, { expires_in: 'soon' }],
  ['end of all links', 'DELETE', (id) => `/media/${id}/links`],
  ['decisions', 'GET', (id) => `/media/${id}/moderation`],
  ['mp4 for a moderator', 'GET', (id) => `/media/${id}/moderation/mp4`],
  ['decision', 'POST', (id) => `/media/${id}/moderation`, { action: 'unhide' }],
  ['deletion', 'DELETE', (id) => `/media/${id}`],
  ['deletion by a delete token', 'DELETE', (id) => `/media/${id}`, undefined, { 'x-delete-token': 'wrong' }],
]

const lists = [
  ...['/media?', '/media?order=asc&', '/media?sort=title&', '/media?sort=bytes&', '/media?sort=duration&'],
  ...['/media?q=title+owner&', '/media?tag=endpoints&', '/media?nsfw=false&'],
]

/** The answer without the allowances of its token, which every call uses up. */
function essence(answer: Answer) {
  const { headers, ...rest } = comparable(answer)
  return {
    ...rest,
    headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith('ratelimit-'))),
  }
}

/** Calls of a token that has another owner, and a deletion without one. */
async function askAll(id: string): Promise<Record<string, object>> {
  const answers = calls.map(async ([name, method, path, body, headers = { token: stage.stranger }]) => {
    const sent = { ...headers, ...(body && { 'content-type': 'application/json' }) }
    const init = { headers: sent, ...(body && { body: JSON.stringify(body) }) }
    return [name, essence(await stage.service.call(method, path(id), init))]
  })
  return Object.fromEntries(await Promise.all(answers))
}

let toUnknown: ReturnType<typeof askAll> | undefined

/** The states of a clip and its bytes, each once: the link of a visitor plays no part here. */
const clipStates = new Map(allStates.toReversed().map((state) => [`${state.source} ${state.steps}`, state]))

test.for([...clipStates.values()])(
  '$source and $name: its owner and admins see the clip, to strangers it is an unknown one',
  async (state) => {
    const { source, steps } = state
    const { id } = await stage.make(source, steps)
    for (const token of [stage.service.token, stage.admin]) {
      const { status, body } = await stage.service.get(`/media/${id}`, { token })
      expect([status, body.success ?? null]).toEqual(
        isThere(state) ? [200, expect.objectContaining(seen(state))] : [410, null],
      )
    }
    toUnknown ??= askAll(UNKNOWN_ID)
    expect(await askAll(id)).toEqual(await toUnknown)
  },
)

const isThere = ({ steps }: State) => !steps.includes('deleted') && !steps.includes('expired')

/** Details that follow from the state. */
const seen = ({ source, steps }: (typeof allStates)[number]) => ({
  state: steps.includes('hidden') && !steps.includes('shown again') ? 'hidden' : source,
  visibility: steps.findLast((step) => ['public', 'unlisted', 'private'].includes(step)),
  title: SECRET_TITLE,
})

test('lists and searches of the owner and of admins have the clips that are there, those of strangers none', async () => {
  const [all, there] = [new Set<string>(), new Set<string>()]
  for (const state of [...states, ...states.filter(isThere)].map((state, index) => ({
    ...state,
    source: sourceStates[index % 3] ?? 'ready',
  }))) {
    const { id } = await stage.make(state.source, state.steps)
    all.add(id)
    if (isThere(state)) there.add(id)
  }
  for (const path of lists) {
    const listedTo = async (token: string) => {
      const { status, body } = await stage.service.get(`${path}limit=100`, { token })
      return [
        status,
        new Set(body.success.items.map(({ id }: { id: string }) => id).filter((id: string) => all.has(id))),
      ]
    }
    expect(await listedTo(stage.service.token), path).toEqual([200, there])
    expect(await listedTo(stage.admin), path).toEqual([200, there])
    const { status, body } = await stage.service.get(`${path}limit=100`, { token: stage.stranger })
    expect([status, body.success], path).toEqual([200, { items: [], next_cursor: null }])
  }
})

test('events of private clips go to webhooks of their owner alone, and name no text to admins', async () => {
  for (const steps of [
    ['private', 'hidden', 'shown again', 'deleted'],
    ['private', 'expired'],
  ] as const) {
    await stage.make('ready', steps)
  }
  const deliveriesTo = async (token: string, id: string) =>
    (await stage.service.get(`/webhooks/${id}/deliveries`, { token })).body.success.items
  expect(await deliveriesTo(stage.stranger, hooks.stranger)).toEqual([])
  const toAdmin: { type: string; payload: { data: object } }[] = await deliveriesTo(stage.admin, hooks.admin)
  expect(new Set(toAdmin.map(({ type }) => type))).toEqual(new Set(['media.hidden', 'media.unhidden']))
  for (const { payload } of toAdmin) {
    expect(Object.keys(payload.data).filter((name) => !['id', 'state', 'reason', 'origin'].includes(name))).toEqual([])
  }
})
