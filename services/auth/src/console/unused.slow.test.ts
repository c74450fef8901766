import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStage } from '../../test/service-process.ts'

let stage: Awaited<ReturnType<typeof openStage>>
beforeAll(async () => {
  stage = await openStage()
})
afterAll(() => stage?.end())

/** Writes the address of each module that the process loads. */
const LISTING = `import { registerHooks } from 'node:module'
registerHooks({ load(url, context, next) { console.log('loaded ' + url); return next(url, context) } })`

/** Modules of the console, of the hosted pages and of lit-html that a process has loaded once it listens. */
async function loadedWith(settings: Record<string, string>): Promise<string[]> {
  const { output } = await stage.serve({
    ...{ NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(LISTING)}` },
    ...settings,
  })
  const all = [...output().matchAll(/^loaded (\S+)$/gm)].map(([, url = '']) => url)
  expect(all.length).toBeGreaterThan(200)
  return all.flatMap((url) => /(?:src\/(console|flows\/pages|http\/hosted)\/.*|lit-html.*)/.exec(url)?.[0] ?? [])
}

test('no module of the console or the pages is loaded while they are off', async () => {
  expect(await loadedWith({})).toEqual([])
  // The rest waits for the first request.
  expect(await loadedWith({ AUTH_HOSTED_PAGES_ENABLED: 'true' })).toEqual(['src/flows/pages/pages.routes.ts'])
})
