// The page of one clip for its owner.
import { describe, expect } from 'vitest'
import { BASE_URL, startTestService, test } from '../../../../test/service.ts'
import { elementsOf } from '../testing/markup.ts'
import { addClips, HOSTILE_TITLE, signedIn } from './testing/library-clips.ts'

const pathIn = (text: string, pattern: RegExp): string =>
  (pattern.exec(text)?.[1] ?? '').replace(BASE_URL, '').replace('https://files.example', '').replaceAll('&amp;', '&')

describe('the page of a clip', () => {
  test('has its player, files, other sizes and texts to copy', async ({ service }) => {
    const { token } = await service.newToken()
    const { ready, hostile } = await addClips(service, token)
    const headers = await signedIn(service, token)
    const { status, text } = await service.get(`/library/${ready}`, headers)
    expect([status, text.match(/<h1[^>]*>([^<]*)/)?.[1]]).toEqual([200, 'A cat jumps'])
    expect(text).toContain(`<iframe src="${BASE_URL}/embed/${ready}" title="A cat jumps"`)
    for (const kind of ['gif', 'jpg', 'mp4', 'webm'])
      expect(text).toContain(`href="https://files.example/f/${ready}.${kind}"`)
    const sizes = [...text.matchAll(/href="https:\/\/files\.example(\/f\/\w+\/[^"]+)"/g)].map(([, path]) => path ?? '')
    expect(sizes).toHaveLength(19)
    // All are names that the service knows.
    for (const path of sizes.filter((each) => /webp|jpg/.test(each)).slice(0, 3))
      expect([200, 302]).toContain((await service.get(path)).status)
    expect(text).toContain(`value="[![A cat jumps](https://files.example/f/${ready}.gif)](${BASE_URL}/gif/${ready})"`)
    expect(text).toContain(
      `value="[url=${BASE_URL}/gif/${ready}][img]https://files.example/f/${ready}.gif[/img][/url]"`,
    )
    expect(text).toContain('value="cat, jump"')
    const title = HOSTILE_TITLE.replace('\u202e', '').trim()
    const page = elementsOf((await service.get(`/library/${hostile}`, headers)).text)
    expect(page.find(({ attributes }) => attributes.name === 'title')?.attributes.dir).toBe('auto')
    expect(page.some(({ name }) => name === 'b')).toBe(false)
    expect(title.length).toBeGreaterThan(190)
  })

  test('shows the player of a private clip by a link that is not given away', async ({ service }) => {
    const { token } = await service.newToken()
    const { private: id } = await addClips(service, token)
    const { text } = await service.get(`/library/${id}`, await signedIn(service, token))
    expect((await service.get(pathIn(text, /<iframe src="([^"]+)"/))).status).toBe(200)
    expect((await service.get(`/embed/${id}`)).status).toBe(404)
    expect(text).toContain('This clip is private')
    expect(text).toContain('id="links"')
    expect(text).not.toContain('class="copies"')
  })

  test.for([['read'], ['admin']] as const)(
    'shows a private clip to a token that makes no links of its own of it by no address of its page: %s',
    async (scopes, { service }) => {
      const { token, id } = await service.newToken()
      const { private: clip } = await addClips(service, token)
      const isReader = scopes[0] === 'read'
      if (isReader) await service.deps.pool.query(`update api_tokens set scopes = '{read}' where id = $1`, [id])
      const headers = await signedIn(service, isReader ? token : (await service.newToken({ scopes: ['admin'] })).token)
      const paths = [`/library/${clip}`, ...(isReader ? ['/library', `/library/cards?id=${clip}`] : [])]
      const shown = (await Promise.all(paths.map((path) => service.get(path, headers))))
        .map(({ text }) => text)
        .join('')
      expect(shown).not.toContain(`/gif/${clip}`)
      const player = pathIn(shown, /<iframe src="([^"]+)"/)
      expect((await service.get(player)).status).toBe(200)
      expect((await service.get(player.replace('/embed/', '/gif/'))).status).toBe(404)
      const files = [...shown.matchAll(/"https:\/\/files\.example(\/f\/[^"]+[?;]s=[^"]+)"/g)]
      expect(files.length).toBeGreaterThan(0)
      service.clock.advance({ seconds: 20 * 60 })
      for (const [, path = ''] of [[player, player], ...files])
        expect((await service.get(path.replaceAll('&amp;', '&'))).status).toBe(404)
    },
  )

  test('says why there is no player, and asks for no file', async ({ service }) => {
    const { token } = await service.newToken()
    const ids = await addClips(service, token)
    const headers = await signedIn(service, token)
    const told = {
      hidden: 'has hidden this clip',
      failed: 'is damaged or incomplete',
      waiting: 'is being made',
    } as const
    for (const [state, words] of Object.entries(told)) {
      const { status, text } = await service.get(`/library/${ids[state as keyof typeof told]}`, headers)
      expect([state, status]).toEqual([state, 200])
      expect(text).toContain(words)
      expect(text).not.toMatch(/<iframe|<img|files\.example/)
    }
  })

  test('is the same 404 for unknown, deleted, expired and foreign clips', async ({ service }) => {
    const { token } = await service.newToken()
    const { deleted, expired } = await addClips(service, token)
    const foreign = (await addClips(service, (await service.newToken()).token)).ready
    const headers = await signedIn(service, token)
    const pages = []
    for (const id of ['aB3dE9xK', 'no-clip', deleted, expired, foreign]) {
      const { status, text } = await service.get(`/library/${id}`, headers)
      expect([id, status]).toEqual([id, 404])
      pages.push(text)
    }
    expect(new Set(pages).size).toBe(1)
    expect(pages[0]).toContain('<h1 tabindex="-1" dir="auto">Not found</h1>')
  })

  test('draws the views of thirty days, with the numbers as a table', async ({ service }) => {
    const { token } = await service.newToken()
    const { ready } = await addClips(service, token)
    const day = service.deps.now().toISOString().slice(0, 10)
    await service.deps.pool.query('insert into clip_views (clip_id, day, page, embed, file) values ($1, $2, 5, 2, 1)', [
      ready,
      day,
    ])
    const { text } = await service.get(`/library/${ready}`, await signedIn(service, token))
    expect(text).toMatch(/<polyline points="0,80\.0 [^"]*290,0\.0">/)
    expect(text).toMatch(/data-column="Page">5<\/td><td role="cell" data-column="Player">2<\/td>/)
  })

  test('has no views where none are counted', async () => {
    const service = await startTestService({ MEDIA_VIEWS: 'off' })
    const { ready } = await addClips(service)
    expect((await service.get(`/library/${ready}`, await signedIn(service))).text).not.toContain('polyline')
    await service.close()
  })

  test('shows a token without write or delete nothing to change', async ({ service }) => {
    const { token, id } = await service.newToken()
    const { ready } = await addClips(service, token)
    await service.deps.pool.query(`update api_tokens set scopes = '{read}' where id = $1`, [id])
    const { text } = await service.get(`/library/${ready}`, await signedIn(service, token))
    expect(text).not.toMatch(/id="clip"|id="poster"|id="delete"/)
  })
})
