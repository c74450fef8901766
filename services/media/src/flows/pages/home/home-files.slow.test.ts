// Several files at once on the page at `/`, in a browser. The clips are ready sources: nothing is transcoded.

import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '@services/common/dev/dev-ports'
import { accessibilityFaults, keyboardFaults } from '@services/common/testing/http/accessibility'
import { type Browser, launchBrowser, type Page } from '@services/common/testing/http/browser'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { gif } from '../../../../test/gif-bytes.ts'
import { addAlikeSource } from '../../../../test/ready-sources.ts'
import { idIn, startTestService, type TestService } from '../../../../test/service.ts'

const LARGE_BYTES = 21 * 1024 ** 2

describe('several files', { tags: 'chromium' }, () => {
  let service: TestService
  let browser: Browser

  let base: string
  let proxy: Server
  /** Fate of each piece of a file that comes through the proxy. */
  let onPiece: (offset: number) => Fate = () => PASSES

  beforeAll(async () => {
    const port = await findFreePort()
    base = `http://127.0.0.1:${port}`
    const settings = { MEDIA_BASE_URL: base, MEDIA_FILES_BASE_URL: base }
    ;[service, browser] = await Promise.all([startTestService(settings), launchBrowser()])
    proxy = startProxy(service.url, (offset) => onPiece(offset)).listen(port, '127.0.0.1')
    await once(proxy, 'listening')
  })
  afterAll(async () => {
    await browser?.close()
    proxy?.close()
    await service?.close()
  })

  /** The page, signed in with a new token of these scopes. */
  async function openPage(options: Parameters<Browser['newContext']>[0] = {}) {
    const context = await browser.newContext(options)
    onTestFinished(() => context.close())
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('console', (message) => complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(String(error)))
    const { token, id } = await service.newToken()
    await page.goto(`${base}/session?next=%2F`)
    await page.fill('[name=token]', token)
    await page.press('[name=token]', 'Enter')
    await page.waitForSelector('#add')
    return { page, token: { token, id }, complaints: () => complaints.filter((text) => /policy|Error:/i.test(text)) }
  }

  let made = 0
  /** Small GIFs whose clips are ready at once. */
  const newGifs = async (count: number) => {
    const files = Array.from({ length: count }, () => gif(20, 12, [{ delay: ++made }]))
    for (const file of files) await addAlikeSource(service.deps, file, startTestService)
    return files
  }

  const clipsOf = async ({ id }: { id: string }) =>
    (await service.deps.pool.query('select title, tags from clips where token_id = $1 order by title', [id])).rows

  const states = (page: Page) =>
    page.$$eval('#rows > li', (rows) => rows.map((row) => (row as unknown as Shown).dataset.state))

  test('forty that are dropped at once over a connection that breaks become forty clips, but for a refused one', async () => {
    const { page, token, complaints } = await openPage({ viewport: { width: 320, height: 700 } })
    const files = [...(await newGifs(39)), Buffer.from('no clip')]
    const headers = { token: token.token, 'content-type': 'application/json' }
    const album = await service.call('POST', '/albums', { headers, body: JSON.stringify({ title: 'Trip' }) })
    // One answer is lost before the service has the file, one after; then the connection works again.
    let calls = 0
    await page.route('**/media/upload', async (route) => {
      const call = ++calls
      if (call === 5) return route.abort()
      if (call === 8) await route.fetch()
      return call === 8 ? route.abort() : route.continue()
    })
    await drop(page, files)
    expect(await states(page)).toEqual(Array.from(files, () => 'draft'))
    expect([await page.isVisible('#trim'), await page.textContent('#send')]).toEqual([false, 'Add 40 clips'])
    expect(await page.getByLabel('Title of 7.gif').inputValue()).toBe('7')
    await page.getByLabel('Title of 7.gif').fill('The seventh')
    await page.click('#more summary')
    await page.fill('#tags', 'forty')
    await page.selectOption('#album', { label: 'Trip' })
    await page.click('#send')
    await expect.poll(() => page.textContent('#tally')).toBe('39 of 40 ready, 1 not added')
    expect(await states(page)).toEqual([...Array.from({ length: 39 }, () => 'ready'), 'refused'])
    expect(await page.textContent('#rows > li:last-child .state')).toContain('Only GIF')
    const clips = await clipsOf(token)
    expect(clips).toHaveLength(39)
    expect(clips.filter(({ title }) => title === 'The seventh')).toHaveLength(1)
    expect(clips.every(({ tags }) => tags[0] === 'forty')).toBe(true)
    expect((await service.get(`/albums/${album.body.success.id}`, headers)).body.success.count).toBe(39)
    await expect.poll(() => page.textContent('#live')).toBe('39 of 40 ready, 1 not added')

    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    const link = page.getByRole('link', { name: 'The seventh' })
    expect((await service.get((await link.getAttribute('href')) ?? '')).text).toContain('The seventh')
    expect(complaints()).toEqual([])
  })

  test('a large file goes on after a reload where it stopped, once it is chosen again', async () => {
    const { page, token } = await openPage()
    const folder = await mkdtemp(join(tmpdir(), 'home-files-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const bytes = Buffer.alloc(LARGE_BYTES)
    bytes.set(gif(20, 12, [{ delay: 999 }]))
    await addAlikeSource(service.deps, bytes, startTestService)
    const [large, small] = [join(folder, 'large.gif'), join(folder, 'small.gif')]
    await writeFile(large, bytes)
    await writeFile(small, (await newGifs(1))[0] as Uint8Array)

    // The first piece is cut, the rest of it gets no answer before the reload. The browser itself may repeat the first.
    const offsets: number[] = []
    onPiece = (offset) => {
      const isFirst = offsets.length === 0
      const isRest = offset > 0 && !offsets.includes(offset)
      offsets.push(offset)
      return isFirst ? { bytes: 5 * 1024 ** 2, isCut: true } : isRest ? { bytes: 0, isCut: false } : PASSES
    }
    await page.setInputFiles('#file', [large, small])
    await page.click('#send')
    await expect.poll(() => offsets.at(-1)).toBeGreaterThan(0)
    const reached = offsets.at(-1)
    await expect.poll(() => states(page)).toEqual(['sending', 'ready'])

    expect(await page.isVisible('#resume')).toBe(false)
    const asked = page.waitForEvent('dialog')
    const reloaded = page.reload()
    const dialog = await asked
    expect(dialog.type()).toBe('beforeunload')
    await dialog.accept()
    await reloaded
    expect(await page.textContent('#resume')).toContain('large.gif')
    await page.setInputFiles('#file', large)
    await page.click('#send')
    await page.waitForSelector('#done-title:focus')
    expect(offsets.at(-1)).toBeGreaterThanOrEqual(Number(reached))
    expect(await clipsOf(token)).toHaveLength(2)
    expect(await page.evaluate('sessionStorage.length')).toBe(0)
  })

  test('rows are paused, cancelled and tried again by keyboard alone, and wait for a limit by themselves', async () => {
    const { page, token } = await openPage()
    const files = await newGifs(5)
    let isHeld = true
    const held: (() => void)[] = []
    await page.route('**/media/upload', async (route) => {
      if (isHeld) await new Promise<void>((resolve) => held.push(resolve))
      await route.continue().catch(() => {})
    })
    await drop(page, files)
    expect(await keyboardFaults(page)).toEqual([])
    await page.locator('#send').press('Enter')
    await expect.poll(() => states(page)).toEqual(['sending', 'sending', 'sending', 'waiting', 'waiting'])
    const focused = () => page.evaluate('document.activeElement.ariaLabel ?? document.activeElement.textContent')
    expect(await focused()).toBe('1.gif')

    await page.getByRole('button', { name: 'Pause: 1.gif' }).press('Enter')
    expect(await focused()).toBe('Go on: 1.gif')
    await page.getByRole('button', { name: 'Cancel: 2.gif' }).press('Space')
    expect(await focused()).toBe('Try again: 2.gif')
    await expect.poll(() => states(page)).toEqual(['paused', 'cancelled', 'sending', 'sending', 'sending'])
    isHeld = false
    for (const release of held) release()
    await page.getByRole('button', { name: 'Go on: 1.gif' }).press('Enter')
    await page.getByRole('button', { name: 'Try again: 2.gif' }).press('Enter')
    await expect.poll(() => page.textContent('#tally')).toBe('All 5 are ready.')
    expect(await clipsOf(token)).toHaveLength(5)

    await page.locator('#clear-list').press('Enter')
    expect([await focused(), await page.isVisible('#list')]).toEqual([expect.anything(), false])
    let limits = 0
    await page.route('**/media/import', (route) => {
      if (++limits > 1) return route.continue()
      const error = { code: 'rate_limited', message: 'Too many requests.' }
      return route.fulfill({ status: 429, headers: { 'retry-after': '1' }, json: { error } })
    })
    await page.fill('#source', 'http://127.0.0.1:1/a.gif\nhttp://127.0.0.1:1/b.gif')
    await page.locator('#send').press('Enter')
    await expect.poll(() => page.textContent('#rows')).toContain('It goes on by itself')
    await expect.poll(() => states(page)).toEqual(['refused', 'refused'])
    expect(limits).toBe(3)
  })

  test('addresses that are pasted are rows, and a refused token is reported at its field and sends no others', async () => {
    const context = await browser.newContext()
    onTestFinished(() => context.close())
    const page = await context.newPage()
    let calls = 0
    page.on('request', (request) => {
      if (request.url().endsWith('/media/import')) calls++
    })
    await page.goto(base)
    await page.fill('#token', 'mh_wrong')
    const addresses = [1, 2, 3, 4, 5].map((each) => `https://example.com/${each}.gif`)
    await page.evaluate(`{
      const clipboardData = new DataTransfer()
      clipboardData.setData('text/plain', ${JSON.stringify(['Clips:', ...addresses].join('\n'))})
      document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true }))
    }`)
    expect(await page.$$eval('#rows .name', (names) => names.map(({ textContent }) => textContent))).toEqual(addresses)
    await page.click('#send')
    await expect.poll(() => states(page)).toEqual(addresses.map(() => 'refused'))
    expect([await page.textContent('#token-error'), calls]).toEqual([expect.stringContaining('unknown'), 3])
    await page.fill('#token', (await service.newToken({ scopes: ['read'] })).token)
    await page.click('#retry-all')
    await expect.poll(() => page.textContent('#token-error')).toBe('This token may not add clips.')
  })

  test('the file of an earlier clip is taken for a new one, and nothing else that an address names', async () => {
    const { page } = await openPage()
    const [file] = await newGifs(1)
    const id = idIn(await service.upload(file as Uint8Array))
    await page.goto(`${base}/#from=${encodeURIComponent(`${base}/f/${id}.mp4`)}`)
    await expect.poll(() => page.textContent('#file-name')).toBe(`${id}.mp4`)
    expect(page.url()).toBe(`${base}/`)
    expect(await page.textContent('#left-out')).toBe(`The file was taken from the clip ${id}.`)
    await page.goto(`${base}/#from=${encodeURIComponent(`${base}/f/00000000.mp4`)}`)
    await page.waitForSelector('#file-error:not([hidden])')
    expect(await page.textContent('#file-error')).toContain('could not be fetched')
    await page.goto(`${base}/#from=${encodeURIComponent(`${base}/openapi.json`)}`)
    expect([await page.textContent('#file-name'), page.url()]).toEqual([`${id}.mp4`, expect.stringContaining('#from')])
  })

  test('the list has no fault of accessibility and no bar to scroll sideways: narrow, dark, in German', async () => {
    const { page } = await openPage({ locale: 'de-DE', viewport: { width: 320, height: 700 } })
    const [ready] = await newGifs(1)
    await page.route('**/media/import', () => {})
    await page.fill('#source', `https://example.com/${'a-long-name'.repeat(20)}.gif\nhttps://example.com/b`)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      expect([colorScheme, await accessibilityFaults(page)]).toEqual([colorScheme, []])
    }
    await drop(page, [ready as Uint8Array, Buffer.from('no clip')])
    await page.click('#send')
    await expect.poll(() => states(page)).toEqual(['sending', 'sending', 'ready', 'refused'])
    await page.locator('#rows summary').click()
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      expect([colorScheme, await accessibilityFaults(page)]).toEqual([colorScheme, []])
    }
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    expect(await page.textContent('#rows')).toContain('Der Clip wird geholt')
  })
})

/** Bytes of a piece that come through; after them the connection is cut, or hears no answer. */
interface Fate {
  bytes: number
  isCut: boolean
}

const PASSES: Fate = { bytes: Number.POSITIVE_INFINITY, isCut: false }

/** A proxy before the service, which decides about each piece of a file. */
function startProxy(url: string, fateOf: (offset: number) => Fate): Server {
  return createServer((client) => {
    const upstream = connect(Number(new URL(url).port), '127.0.0.1')
    upstream.pipe(client)
    let fate = PASSES
    client.on('data', (chunk) => {
      const head = chunk.subarray(0, 5).toString() === 'PATCH' ? chunk.toString('latin1') : ''
      const [, offset] = /^upload-offset: (\d+)/im.exec(head) ?? []
      if (offset !== undefined) fate = { ...fateOf(Number(offset)) }
      if (fate.bytes > 0) upstream.write(chunk.subarray(0, fate.bytes))
      fate.bytes -= chunk.length
      if (fate.bytes <= 0 && fate.isCut) client.destroy()
    })
    client.on('close', () => upstream.end())
    for (const socket of [client, upstream]) socket.on('error', () => client.destroy())
  })
}

/** Drops files of these contents, named `1.gif` and so on. */
const drop = (page: Page, contents: Uint8Array[]) =>
  page.evaluate(`{
    const dataTransfer = new DataTransfer()
    const contents = ${JSON.stringify(contents.map((each) => Buffer.from(each).toString('base64')))}
    contents.forEach((content, index) => {
      const bytes = Uint8Array.from(atob(content), (char) => char.charCodeAt(0))
      dataTransfer.items.add(new File([bytes], (index + 1) + '.gif', { type: 'image/gif' }))
    })
    const event = new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true })
    document.getElementById('drop').dispatchEvent(event)
  }`)

interface Shown {
  dataset: { state: string }
}
