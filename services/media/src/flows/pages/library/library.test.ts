// Pages of an owner: their visitors, and what they show.
import { describe, expect } from 'vitest'
import { BASE_URL, startTestService, test } from '../../../../test/service.ts'
import { elementsOf } from '../testing/markup.ts'
import { addClips, HOSTILE_TITLE, signedIn } from './testing/library-clips.ts'

/** Cards of a page, by the name of the clip. */
function cardsIn(text: string): Map<string, string> {
  const cards = text.split('<li class="clip').slice(1)
  return new Map(cards.map((card) => [/class="name"[^>]*>([^<]*)</.exec(card)?.[1] ?? '', card]))
}

const statesOf = (card = '') =>
  /<p class="states">([\s\S]*?)<\/p>/
    .exec(card)?.[1]
    ?.replace(/<[^>]*>/g, '')
    .trim()

describe('the pages', () => {
  test('lead a visitor without a session to the sign-in page, and from there back', async ({ service }) => {
    const answer = await service.get('/library?q=a%20b&sort=title')
    const next = '/session?next=%2Flibrary%3Fq%3Da%2520b%26sort%3Dtitle'
    expect([answer.status, answer.headers.get('location')]).toEqual([303, BASE_URL + next])
    expect((await service.get(next)).text).toContain('name="next" value="/library?q=a%20b&amp;sort=title"')
  })

  test('say that a session has ended', async ({ service }) => {
    const headers = await signedIn(service)
    await service.deps.pool.query('delete from browser_sessions')
    const { status, headers: answered } = await service.get('/library', headers)
    expect([status, answered.get('location')]).toEqual([303, `${BASE_URL}/session?next=%2Flibrary&ended=1`])
    expect((await service.get('/session?next=%2Flibrary&ended=1')).text).toContain('Your session has ended')
  })

  test('are for their visitor alone, under a policy without other hosts or inline code', async ({ service }) => {
    const { status, text, headers } = await service.get('/library', await signedIn(service))
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('private, no-store')
    const policy = headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'; ")
    expect(policy).toContain("media-src 'self' https://files.example; frame-src 'self'")
    expect(text).not.toMatch(/ style=| on\w+=|<style|<script(?! type="(module" src="|application\/json"))/)
    expect(text).toContain('href="https://media.example/library" aria-current="page"')
    expect(text).not.toContain('/admin')
  })

  test('are in the language of the browser', async ({ service }) => {
    const headers = { ...(await signedIn(service)), 'accept-language': 'de' }
    const { text } = await service.get('/library', headers)
    expect(text).toContain('<html lang="de">')
    expect(text).toContain('>Abmelden</button>')
  })

  test('lead administrators to their pages', async ({ service }) => {
    const { token } = await service.newToken({ scopes: ['admin'] })
    expect((await service.get('/library', await signedIn(service, token))).text).toContain('/admin')
  })

  test('do not exist without MEDIA_LIBRARY', async () => {
    const service = await startTestService({ MEDIA_LIBRARY: 'off' })
    expect((await service.get('/library')).status).toBe(404)
    await service.close()
  })
})

describe('the library', () => {
  test('shows each clip of the token in its state, and neither deleted nor expired ones', async ({ service }) => {
    const { token } = await service.newToken()
    const ids = await addClips(service, token)
    const { text } = await service.get('/library', await signedIn(service, token))
    const cards = cardsIn(text)
    expect(Object.fromEntries([...cards].map(([name, card]) => [name, statesOf(card)]))).toEqual({
      'A cat jumps': '',
      [escaped(HOSTILE_TITLE.replace('\u202e', ''))]: '',
      'Only with the address': 'unlisted',
      'For me alone': 'private',
      'Gone in a week': 'expires in 7 days',
      'Look away': 'sensitive',
      'Taken down': 'hidden: spam',
      'Clip processing 0': 'waiting 1',
      'Clip processing 0.4': 'making 40%',
      'Clip failed 0': 'failed: The file is damaged or incomplete.',
    })
    // No file is asked for that nothing answers.
    for (const name of ['Taken down', 'Clip failed 0', 'Clip processing 0'])
      expect(cards.get(name)).not.toContain('<img')
    expect(cards.get('Taken down')).not.toContain('data-mp4')
    expect(text).not.toContain(ids.deleted)
    expect(
      elementsOf(text)
        .filter(({ name }) => name === 'img')
        .every(({ attributes }) => attributes.width === '320'),
    ).toBe(true)
    const [picture] = /https:\S+w320\.webp\?[^"]+/.exec(cards.get('For me alone') ?? '') ?? []
    const path = picture?.replace('https://files.example', '').replaceAll('&amp;', '&') ?? ''
    expect([302, 200]).toContain((await service.get(path)).status)
    expect((await service.get(path.replace(/\?.*/, ''))).status).toBe(404)
  })

  test('finds clips by the filters of its address, and keeps them in its form', async ({ service }) => {
    const { token } = await service.newToken()
    const ids = await addClips(service, token)
    const headers = await signedIn(service, token)
    const namesAt = async (query: string) => [...cardsIn((await service.get(`/library?${query}`, headers)).text).keys()]
    expect((await namesAt('q=cat&state=&nsfw=&sort=')).toSorted()).toEqual(['A cat jumps', 'For me alone'])
    expect(await namesAt('tag=CAT&sort=title')).toEqual(['A cat jumps', 'For me alone'])
    expect(await namesAt('state=failed')).toEqual(['Clip failed 0'])
    expect(await namesAt('nsfw=true')).toEqual(['Look away'])
    expect(await namesAt('visibility=unlisted')).toEqual(['Only with the address'])
    expect(await namesAt('from=2999-01-01')).toEqual([])
    const ofAlbum = { headers: { token, 'content-type': 'application/json' } }
    const made = await service.call('POST', '/albums', { ...ofAlbum, body: JSON.stringify({ title: 'A <trip>' }) })
    const { id: album } = made.body.success
    await service.call('POST', `/albums/${album}/items`, { ...ofAlbum, body: JSON.stringify({ ids: [ids.sensitive] }) })
    expect(await namesAt(`album=${album}`)).toEqual(['Look away'])
    expect((await service.get(`/library?album=${album}`, headers)).text).toContain(
      `<option value="${album}" selected>A &lt;trip&gt;</option>`,
    )
    const { text } = await service.get('/library?q=%22%3E%3Cb&tag=cat&sort=title&from=2020-01-01', headers)
    expect(text).toContain('name="q" value="&quot;&gt;&lt;b"')
    expect(text).toContain('<option value="title" selected>')
    expect(text).toContain('<details open>')
    expect(text).toContain('No clips match.')
  })

  test.for(['q=%20%2C', 'from=yesterday', 'from=2026-02-01&to=2026-01-01', 'cursor=none'])(
    'says that it cannot search for %s, and keeps the form',
    async (query, { service }) => {
      const { token } = await service.newToken()
      await addClips(service, token)
      const { status, text } = await service.get(`/library?${query}`, await signedIn(service, token))
      expect([status, cardsIn(text).size]).toEqual([200, 0])
      expect(text).toContain('role="alert">This search cannot be done')
      expect(text).toContain('<form class="search"')
    },
  )

  test('has further pages by links, which lead through all clips once', async ({ service }) => {
    const { token, id } = await service.newToken()
    await addClips(service, token)
    await service.deps.pool.query(
      `insert into clips (id, token_id, source_id, title, source_kind, created_at)
       select 'z' || lpad(n::text, 7, '0'), $1, source_id, 'Copy ' || n, 'upload', created_at - n * interval '1 s'
       from clips, generate_series(1, 70) n where token_id = $1 and title = 'A cat jumps'`,
      [id],
    )
    const headers = await signedIn(service, token)
    const names: string[] = []
    let path: string | undefined = '/library'
    while (path) {
      const { text } = await service.get(path, headers)
      names.push(...cardsIn(text).keys())
      path = /id="next" rel="next" href="([^"]+)"/.exec(text)?.[1]?.replaceAll('&amp;', '&')
    }
    expect([names.length, new Set(names).size]).toEqual([80, 80])
  })

  test('of another token, an administrator among them, has none of these clips', async ({ service }) => {
    const { token } = await service.newToken()
    const { ready } = await addClips(service, token)
    for (const scopes of [['read', 'delete'], ['admin']] as const) {
      const other = await service.newToken({ scopes: [...scopes] })
      const headers = await signedIn(service, other.token)
      for (const path of ['/library', `/library/cards?id=${ready}`, `/library/delete?id=${ready}`])
        expect((await service.get(path, headers)).text).not.toContain(ready)
    }
  })

  test('says how much of the quota and of the day is used', async () => {
    const service = await startTestService({ MEDIA_QUOTA_BYTES: '20000000', MEDIA_DAILY_BYTES: '1000000' })
    await addClips(service)
    const { text } = await service.get('/library', await signedIn(service))
    expect(text).toMatch(/<dt>Storage<\/dt><dd>\d+(\.\d)? (kB|MB) of 20 MB<meter/)
    expect(text).toMatch(/<dt>clips<\/dt><dd>10<\/dd>/)
    expect(text).toMatch(/<dd>12 clips, \d+(\.\d)? (byte|kB) of 1 MB<meter/)
    await service.close()
  })

  test('that is empty says what to do first, and whether the token may', async ({ service }) => {
    const { token } = await service.newToken()
    expect((await service.get('/library', await signedIn(service, token))).text).toContain('Add a GIF or a video')
    const reader = await service.newToken({ scopes: ['read'] })
    expect((await service.get('/library', await signedIn(service, reader.token))).text).toContain(
      'lacks the scope write',
    )
  })

  test('of a token without read is a page that names the scope', async ({ service }) => {
    const { token } = await service.newToken({ scopes: ['write'] })
    const { status, text } = await service.get('/library', await signedIn(service, token))
    expect(status).toBe(403)
    expect(text).toContain('Your token lacks the scope that this page needs: read')
  })
})

describe('without script', () => {
  test('chosen clips are deleted after a question, by a form of this session alone', async ({ service }) => {
    const { token } = await service.newToken()
    const { ready, private: mine } = await addClips(service, token)
    const foreign = (await addClips(service, (await service.newToken()).token)).ready
    const headers = await signedIn(service, token)
    const { text } = await service.get(`/library/delete?id=${ready}&id=${mine}&id=${foreign}`, headers)
    expect(text.match(/<li dir="auto">/g)).toHaveLength(2)
    const formToken = /<form method="post" action="[^"]*delete">[\s\S]*?name="form_token" value="([^"]+)"/.exec(
      text,
    )?.[1]
    const post = (form_token: string) =>
      service.call('POST', '/library/delete', {
        headers,
        body: new URLSearchParams({ form_token, ids: [ready, mine, foreign].join() }),
      })
    expect((await post('wrong')).status).toBe(403)
    expect((await service.get(`/gif/${ready}`)).status).toBe(200)
    const answer = await post(formToken ?? '')
    expect([answer.status, answer.headers.get('location')]).toEqual([303, `${BASE_URL}/library`])
    expect((await service.get(`/gif/${ready}`)).status).toBe(410)
    expect((await service.get(`/gif/${foreign}`)).status).toBe(200)
  })

  test('a form that was sent after the end of the session leads to the sign-in page', async ({ service }) => {
    const headers = await signedIn(service)
    await service.deps.pool.query('delete from browser_sessions')
    const body = new URLSearchParams({ form_token: 'any', ids: 'aB3dE9xK' })
    const answer = await service.call('POST', '/library/delete', { headers, body })
    expect([answer.status, answer.headers.get('location')]).toEqual([
      303,
      `${BASE_URL}/session?next=%2Flibrary&ended=1`,
    ])
  })

  test('a token without delete sees no such button, and gets a page that says so', async ({ service }) => {
    const { token } = await service.newToken({ scopes: ['read', 'write'] })
    const { ready } = await addClips(service, token)
    const headers = await signedIn(service, token)
    expect((await service.get('/library', headers)).text).not.toContain('Delete the chosen clips')
    expect((await service.get(`/library/delete?id=${ready}`, headers)).status).toBe(403)
  })
})

const escaped = (text: string) => text.replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;').trim()
