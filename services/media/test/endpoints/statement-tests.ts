// Timing: a clip that a visitor must not know costs the service the same statements as an id that no clip ever had. No
// test measures time; a further statement is what a stranger could measure.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { endpoints } from './endpoints.ts'
import { requestAll } from './request-endpoints.ts'
import { openStage, type Stage, type StagedClip, UNKNOWN_ID } from './stage.ts'
import type { SourcedState, Visitor } from './states.ts'

export function statementTests(states: readonly SourcedState[]): void {
  let stage: Stage
  let heard: string[] | undefined

  beforeAll(async () => {
    stage = await openStage()
    // A client stays in the pool, so its statements are heard from its first use on.
    stage.service.deps.pool.on('acquire', (client) => {
      if (heardBy.has(client)) return
      heardBy.add(client)
      const query = client.query.bind(client) as (...args: unknown[]) => unknown
      client.query = ((...args: [{ text?: string } | string]) => {
        const [statement] = args
        const text = typeof statement === 'string' ? statement : (statement.text ?? '')
        if (OF_CLIPS.test(text)) heard?.push(text)
        return query(...args)
      }) as typeof client.query
    })
  })
  afterAll(() => stage.close())

  /** Statements that an endpoint could run; counts of tokens and notifications come later and from elsewhere. */
  const OF_CLIPS = /"(clips|sources|renditions|variants|reports)"|rate_limits/

  const heardBy = new WeakSet<object>()

  /** Statements of each endpoint, one endpoint after the other. */
  async function statementsOf(visit: {
    it: StagedClip
    visitor: Visitor
    id?: string
  }): Promise<Record<string, string[]>> {
    const statements: Record<string, string[]> = {}
    for (const endpoint of endpoints) {
      heard = []
      await requestAll(stage.service, stage, [endpoint], visit)
      statements[endpoint.name] = heard
    }
    heard = undefined
    return statements
  }

  const ofUnknown: Partial<Record<Visitor, Record<string, string[]>>> = {}

  test.for(states.filter(({ answer }) => answer === 404))(
    '$source and $name: each endpoint runs the statements that it runs for an unknown id',
    async ({ source, steps, visitor }) => {
      const it = await stage.make(source, steps)
      ofUnknown[visitor] ??= await statementsOf({ it, visitor, id: UNKNOWN_ID })
      expect(Object.values(ofUnknown[visitor]).every(({ length }) => length === 1)).toBe(true)
      expect(await statementsOf({ it, visitor })).toEqual(ofUnknown[visitor])
    },
  )
}
