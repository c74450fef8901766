// Albums for their owner: forms, states of clips, and visitors that must not change them.
import { describe, expect } from 'vitest'
import { BASE_URL, type TestService, test } from '../../../../test/service.ts'
import { elementsOf } from '../testing/markup.ts'
import { addClips, HOSTILE_TITLE, signedIn } from './testing/library-clips.ts'

const LIST = '/library/albums'
const FIELDS = { title: 'Trip', description: 'To the <sea>', visibility: 'unlisted' }

async function visit(service: TestService, scopes?: string[]) {
  const { token, id } = await service.newToken()
  if (scopes) await service.deps.pool.query('update api_tokens set scopes = $2 where id = $1', [id, scopes])
  const headers = await signedIn(service, token)
  const get = (path: string) => service.get(path, headers)
  const post = (path: string, fields: Record<string, string>, more: Record<string, string> = {}) =>
    service.call('POST', path, {
      headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded', ...more },
      body: new URLSearchParams(fields).toString(),
    })
  const form_token = valueIn((await get('/library')).text, 'form_token')
  /** Makes an album by the form; returns its path. */
  async function create(fields: Record<string, string> = FIELDS): Promise<string> {
    const made = await post(LIST, { form_token, ...fields })
    expect([made.status, made.text]).toEqual([303, ''])
    return (made.headers.get('location') ?? '').replace(BASE_URL, '')
  }
  const add = (album: string, ids: string[]) =>
    service.call('POST', `${album.replace('/library', '')}/items`, {
      headers: { token, 'content-type': 'application/json' },
      body: JSON.stringify({ ids }),
    })
  return { token, id, get, post, form_token, create, add }
}

const valueIn = (text: string, name: string) =>
  elementsOf(text).find(({ attributes }) => attributes.name === name)?.attributes.value ?? ''

describe('the pages of albums', () => {
  test('make, save and delete an album by forms', async ({ service }) => {
    const { get, post, form_token, create } = await visit(service)
    expect((await get(LIST)).text).toContain('No albums yet')
    const album = await create()
    const { status, text } = await get(album)
    expect([status, valueIn(text, 'title')]).toEqual([200, 'Trip'])
    expect(text).toContain('To the &lt;sea&gt;</textarea>')
    expect(text).toContain('<option value="unlisted" selected>')
    const change = {
      form_token,
      etag: valueIn(text, 'etag'),
      title: 'Sea',
      description: 'a\r\nb',
      visibility: 'public',
    }
    expect((await post(album, change)).headers.get('location')).toBe(BASE_URL + album)
    const saved = (await get(album)).text
    expect(saved).toContain('dir="auto">Sea</h1>')
    for (const copy of [`/a/${album.slice(-8)}"`, '/embed&quot; width=', '/oembed?url=', '/feed.xml"'])
      expect(saved).toContain(copy)
    expect((await get(`${album}/delete`)).text).toContain('Delete this album?')
    expect((await post(`${album}/delete`, { form_token })).headers.get('location')).toBe(BASE_URL + LIST)
    expect([(await get(album)).status, (await get(LIST)).text.includes('No albums yet')]).toEqual([404, true])
  })

  test('list the albums of the token, by cursor, each once', async ({ service }) => {
    const { get, id, create } = await visit(service)
    await create({ ...FIELDS, title: HOSTILE_TITLE })
    await service.deps.pool.query(
      `insert into albums (id, token_id, title, visibility, created_at, updated_at)
       select 'List' || lpad(n::text, 4, '0'), token_id, 'Album ' || n, 'public', created_at - n * interval '1 s', created_at
       from albums, generate_series(1, 41) n where token_id = $1`,
      [id],
    )
    await (await visit(service)).create({ ...FIELDS, title: 'Of another' })
    const names: string[] = []
    for (let path: string | undefined = LIST; path; ) {
      const { text } = await get(path)
      expect(elementsOf(text).length).toBeGreaterThan(10)
      names.push(...[...text.matchAll(/class="name"[^>]*>([^<]*)/g)].map(([, name]) => name ?? ''))
      path = /rel="next" href="([^"]+)"/.exec(text)?.[1]?.replace(BASE_URL, '')
    }
    expect([names.length, new Set(names).size, names.includes('Of another')]).toEqual([42, 42, false])
    expect((await get(`${LIST}?cursor=none`)).status).toBe(422)
  })

  test('show the clips of an album in each state, neither deleted nor expired ones, and the cover of none hidden', async ({
    service,
  }) => {
    const { get, token, create, add } = await visit(service)
    const { deleted, expired, ...ids } = await addClips(service, token)
    const album = await create()
    const order = [ids.hidden, ids.private, ids.sensitive, ids.failed, ids.waiting, ids.ready, ids.unlisted]
    expect((await add(album, order)).status).toBe(200)
    const { text } = await get(album)
    expect([...text.matchAll(/<li class="clip[^"]*" data-id="(\w+)"/g)].map(([, id]) => id)).toEqual(order)
    expect(text).toContain('aria-label="Up: A cat jumps"')
    const list = (await get(LIST)).text
    expect(list).toContain(`src="https://files.example/f/${ids.ready}/w320.webp"`)
    for (const id of [deleted, expired, ids.hidden, ids.private]) expect(list).not.toContain(id)
    await service.call('DELETE', `/media/${ids.ready}`, { headers: { token } })
    expect((await get(album)).text).not.toContain(ids.ready)
  })

  test('lead through a long album, and name for scripts the clips around a page, before which they move others', async ({
    service,
  }) => {
    const { get, token, create, add } = await visit(service)
    const { ready } = await addClips(service, token)
    const copies = Array.from({ length: 41 }, (_, at) => `Copy${1000 + at}`)
    await service.deps.pool.query(
      `insert into clips select (jsonb_populate_record(whole, jsonb_build_object('id', copy))).*
       from clips whole, unnest($2::text[]) copy where whole.id = $1`,
      [ready, copies],
    )
    const album = await create()
    await add(album, copies)
    const dataIn = (text: string) => JSON.parse(/<script[^>]*id="page-data"[^>]*>([^<]*)/.exec(text)?.[1] ?? '')
    const one = (await get(album)).text
    expect(dataIn(one)).toMatchObject({ next: copies[40] })
    const next = /rel="next" href="([^"]+)"/.exec(one)?.[1]?.replace(BASE_URL, '') ?? ''
    const two = (await get(next)).text
    expect(dataIn(two)).toMatchObject({ first: copies[0], previous: copies[39] })
    expect([one, two].map((text) => text.match(/<li class="clip/g)?.length)).toEqual([40, 1])
  })

  test('of a private album have links instead of addresses that would need one', async ({ service }) => {
    const { get, create } = await visit(service)
    const { text } = await get(await create({ ...FIELDS, visibility: 'private' }))
    expect([text.includes('id="links"'), text.includes('class="copies"'), /\/a\/\w{8}/.test(text)]).toEqual([
      ...[true, false, false],
    ])
  })

  test('keep what was typed when the album was changed elsewhere, and show both', async ({ service }) => {
    const { get, post, form_token, create } = await visit(service)
    const album = await create()
    const etag = valueIn((await get(album)).text, 'etag')
    await post(album, { form_token, ...FIELDS, etag, title: 'Theirs' })
    const mine = { form_token, etag, title: 'Mine', description: 'Typed for long', visibility: 'public' }
    const { status, text } = await post(album, mine)
    expect([status, valueIn(text, 'title')]).toEqual([412, 'Mine'])
    expect(text).toContain('Typed for long</textarea>')
    expect(text).toContain('<bdi>Theirs</bdi>')
    expect((await get(album)).text).toContain('>Theirs</h1>')
    expect((await post(album, { ...mine, etag: valueIn(text, 'etag') })).status).toBe(303)
    expect((await get(album)).text).toContain('>Mine</h1>')
  })

  test('keep what was typed when a field is refused', async ({ service }) => {
    const { get, post, form_token, create } = await visit(service)
    const refused = { ...FIELDS, title: ' ' }
    const { status, text } = await post(LIST, { form_token, ...refused })
    expect([status, text.includes('To the &lt;sea&gt;</textarea>')]).toEqual([422, true])
    const album = await create()
    const etag = valueIn((await get(album)).text, 'etag')
    const change = await post(album, { form_token, etag, ...refused })
    expect([change.status, change.text.includes('role="alert"')]).toEqual([422, true])
  })

  test('of a foreign album are the same 404 as of one that never was, for every form', async ({ service }) => {
    const { get, post, form_token } = await visit(service)
    const other = await visit(service)
    const foreign = await other.create()
    const pages = []
    for (const path of [foreign, `${LIST}/aB3dE9xK`, `${LIST}/none`]) {
      const answers = [
        await get(path),
        await get(`${path}/delete`),
        await post(path, { form_token, ...FIELDS, etag: '"1-0"' }),
        await post(`${path}/delete`, { form_token }),
      ]
      expect([path, ...answers.map(({ status }) => status)]).toEqual([path, 404, 404, 404, 404])
      pages.push(...answers.map(({ text }) => text))
    }
    expect(new Set(pages).size).toBe(1)
    expect((await other.get(foreign)).status).toBe(200)
  })

  test('refuse forms of other sites, and of other sessions', async ({ service }) => {
    const { get, post, form_token, create } = await visit(service)
    const album = await create()
    const etag = valueIn((await get(album)).text, 'etag')
    const others: { fields: { form_token: string }; headers: Record<string, string> }[] = [
      { fields: { form_token }, headers: { 'sec-fetch-site': 'cross-site' } },
      { fields: { form_token: (await visit(service)).form_token }, headers: {} },
    ]
    for (const { fields, headers } of others) {
      for (const path of [LIST, album, `${album}/delete`]) {
        const { status } = await post(path, { ...FIELDS, title: 'Forged', etag, ...fields }, headers)
        expect([path, [303, 403].includes(status)]).toEqual([path, true])
      }
    }
    expect([(await get(album)).status, (await get(LIST)).text.includes('Forged')]).toEqual([200, false])
  })

  test('of another token are open to an admin, whose acts are in the audit log', async ({ service }) => {
    const album = await (await visit(service)).create()
    const { get, post, form_token, id } = await visit(service, ['admin'])
    const etag = valueIn((await get(album)).text, 'etag')
    expect((await post(album, { form_token, ...FIELDS, etag, title: 'Decent' })).status).toBe(303)
    expect((await post(`${album}/delete`, { form_token })).status).toBe(303)
    const { rows } = await service.deps.pool.query(
      'select action from audit_entries where token_id = $1 and target = $2 order by action',
      [id, album.slice(-8)],
    )
    expect(rows.map(({ action }) => action)).toEqual(['album_changed', 'album_deleted'])
  })

  test('show a token without write nothing to change, and refuse its forms', async ({ service }) => {
    const { get, post, form_token } = await visit(service, ['read'])
    expect((await get(LIST)).text).not.toContain('name="title"')
    expect((await post(LIST, { form_token, ...FIELDS })).status).toBe(403)
  })
})
