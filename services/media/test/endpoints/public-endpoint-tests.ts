// Endpoints and states: every address without a token, in every state that decides the visibility of a clip. A cell
// that fails is named by its state in the title, and by its endpoint in the difference.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { byEndpoint, endpoints, openTo } from './endpoints.ts'
import { openRefusals, type Refusal } from './refusals.ts'
import { comparable, expectSilence, headOf, pick, requestAll, statusOf } from './request-endpoints.ts'
import { openStage, type Stage } from './stage.ts'
import type { SourcedState } from './states.ts'

export function publicEndpointTests(states: readonly SourcedState[]): void {
  let stage: Stage
  let usualAnswers: Awaited<ReturnType<typeof openRefusals>>

  beforeAll(async () => {
    stage = await openStage()
    await stage.makeVariants()
    usualAnswers = await openRefusals(stage, endpoints)
  })
  afterAll(() => stage.close())

  const isShown = ({ answer }: SourcedState) => answer === 'shown'

  test.for(states.filter(isShown))(
    '$source and $name: every endpoint shows the clip',
    async ({ source, steps, visitor }) => {
      const it = await stage.make(source, steps)
      const open = openTo(visitor, endpoints)
      const answers = await requestAll(stage.service, stage, open, { it, visitor })
      expect(pick(answers, statusOf)).toEqual(byEndpoint(open, ({ shown }) => shown[source]))
      if (steps.at(-1) !== 'private') return
      // No shared cache keeps what a link shows.
      for (const [endpoint, { headers }] of Object.entries(answers)) {
        expect(headers['cache-control'], endpoint).toMatch(/^(private, |no-store$)/)
      }
    },
  )

  test.for(states.filter((state) => !isShown(state)))(
    '$source and $name: every endpoint answers $answer, as for any other clip',
    async ({ source, steps, visitor, answer }) => {
      const status = answer as Refusal
      const visit = { it: await stage.make(source, steps), visitor }
      const open = openTo(visitor, endpoints)
      const answers = await requestAll(stage.service, stage, open, visit)
      expect(pick(answers, statusOf)).toEqual(byEndpoint(open, () => status))
      expect(pick(answers, comparable)).toEqual(pick(await usualAnswers(stage.service, status, visit), comparable))
      for (const [endpoint, refusal] of Object.entries(answers)) expectSilence(refusal, endpoint)
      // GET and HEAD of clips that are not ready have the same handlers.
      if (source !== 'ready') return
      const heads = await requestAll(stage.service, stage, open, { ...visit, method: 'HEAD' })
      expect(pick(heads, comparable)).toEqual(pick(answers, headOf))
    },
  )
}
