import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gunzipSync } from 'node:zlib'
import Fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { html, toText } from '../html.ts'
import { openAssets } from './assets.ts'
import { KIT_FILES, KIT_STYLES, PAGE_POLICY, strictDocument } from './document.ts'
import { button, checkbox, field, hiddenFields, select } from './forms.ts'
import { notice } from './notices.ts'
import { serveAssets } from './serve-assets.ts'
import { table } from './table.ts'

const HOSTILE = `"><img src=x onerror='alert(1)'>`

/** A folder with these files. */
async function folderOf(files: Record<string, string>): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), 'assets-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  return pathToFileURL(`${folder}/`)
}

const MODULES = { 'page.js': "import { one } from './one.js'\none()\n", 'one.js': 'export const one = () => 1\n' }

test('a file is kept for ever under its current address alone, and any other version of a page answers it too', async () => {
  const app = Fastify()
  const assets = openAssets([await folderOf(MODULES)])
  serveAssets(app, '/assets/', assets)
  const ask = async (url: string) => {
    const { statusCode, headers, payload } = await app.inject(url)
    return [statusCode, headers['cache-control'], payload]
  }
  const immutable = 'public, max-age=31536000, immutable'
  expect(await ask(`/assets/${assets.address('one.js')}`)).toEqual([200, immutable, MODULES['one.js']])
  expect(await ask('/assets/one.js?v=000000000000')).toEqual([200, 'no-cache', MODULES['one.js']])
  expect(await ask('/assets/one.js')).toEqual([200, 'no-cache', MODULES['one.js']])
  // An import is of one version: another one would mix the modules of two.
  const imported = assets.address('one.js').replace('?v=', '?is=')
  expect(await ask(`/assets/${imported}`)).toEqual([200, immutable, MODULES['one.js']])
  expect(await ask('/assets/one.js?is=000000000000')).toMatchObject([404, 'no-store', expect.anything()])
  for (const name of ['other.js', '..%2Fone.js', '%2e%2e/package.json', 'constructor', '']) {
    expect(await ask(`/assets/${name}`)).toMatchObject([404, undefined, expect.anything()])
  }
})

test('the address of a module changes with the modules that it imports', async () => {
  const before = openAssets([await folderOf(MODULES)])
  const after = openAssets([await folderOf({ ...MODULES, 'one.js': 'export const one = () => 2\n' })])
  expect(before.find('page.js')?.body).toContain(`from './one.js?is=${before.find('one.js')?.version}'`)
  expect(after.address('page.js')).not.toBe(before.address('page.js'))
})

test('every part escapes all text', () => {
  const parts = [
    field({ name: 'a', label: HOSTILE, value: HOSTILE, hint: HOSTILE, error: HOSTILE }),
    select({
      ...{ name: 's', label: HOSTILE, hint: HOSTILE, error: HOSTILE, value: HOSTILE },
      options: [{ value: HOSTILE, label: HOSTILE, lang: HOSTILE }],
    }),
    checkbox({ name: 'b', label: HOSTILE, hint: HOSTILE }),
    button({ label: HOSTILE, name: 'way', value: HOSTILE }),
    hiddenFields({ [HOSTILE]: HOSTILE }),
    table({ caption: HOSTILE, columns: [HOSTILE], rows: [[HOSTILE]], empty: '' }),
    table({ caption: '', columns: [], rows: [], empty: HOSTILE }),
    notice('problem', HOSTILE),
  ]
  const page = strictDocument({ language: 'en', title: HOSTILE, styles: ['/kit.css'], body: html`${parts}` })
  expect(page).not.toContain('<img')
  expect(page.match(/&lt;img src=x/g)?.length).toBeGreaterThan(18)
})

test('screen readers find the hint and the error of a field and of a list', () => {
  const around = { name: 'code', label: 'Code', hint: 'h', error: 'e' }
  for (const part of [field(around), select({ ...around, value: '', options: [] })]) {
    const markup = toText(part)
    expect(markup).toContain('<label for="field-code">Code</label>')
    expect(markup).toContain('aria-describedby="field-code-hint field-code-error" aria-invalid="true"')
  }
})

test('a list has its value chosen, and says in which language a label is', () => {
  const options = [
    { value: '', label: 'Any' },
    { value: 'de', label: 'Deutsch', lang: 'de' },
  ]
  const markup = toText(select({ name: 'locale', label: 'Language', value: 'de', options }))
  expect(markup).toContain('<option value="">Any</option>\n<option value="de" lang="de" selected>Deutsch</option>')
})

test('the policy permits nothing inline and no other host, and the kit needs neither', () => {
  expect(PAGE_POLICY).not.toMatch(/unsafe|https?:|\*/)
  const kit = openAssets([KIT_FILES])
  for (const name of KIT_STYLES) expect(String(kit.find(name)?.body)).not.toMatch(/@import|url\(/)
})

test.for<[name: string, accepted: string, encoding: string | undefined]>([
  ['kit.css', 'gzip, br', 'gzip'],
  ['kit.css', 'br;q=1, gzip;q=0.5', 'gzip'],
  ['kit.css', 'gzip;q=0, br', undefined],
  ['kit.css', '', undefined],
  ['dot.png', 'gzip', undefined],
])('%s is sent to a browser that takes "%s" with the encoding %s', async ([name, accepted, encoding]) => {
  const app = Fastify()
  serveAssets(app, '/assets/', openAssets([KIT_FILES], { 'dot.png': () => 'a picture' }))
  const answer = await app.inject({ url: `/assets/${name}`, headers: { 'accept-encoding': accepted } })
  expect(answer.headers['content-encoding']).toBe(encoding)
  const body = encoding ? gunzipSync(answer.rawPayload) : answer.rawPayload
  expect(body.toString()).toBe(String(openAssets([KIT_FILES], { 'dot.png': () => 'a picture' }).find(name)?.body))
})
