import type { Browser, Page } from '@services/common/testing/http/browser'

export interface ShownFrame {
  width: number
  height: number
  centiseconds: number
  /** False for a frame that ends early. */
  isWhole: boolean
  rgba: Buffer
}

/** Opens a page that decodes files. One serves for all: each page costs a process. */
export async function openDecodingPage(browser: Browser): Promise<Page> {
  const page = await browser.newPage()
  // ImageDecoder exists in a secure context only.
  const address = 'http://localhost/'
  await page.route(address, (route) => route.fulfill({ contentType: 'text/html', body: '<p>Secure' }))
  await page.goto(address)
  return page
}

/**
 * Frames of an animated image as Chromium shows them, and the number of times that they are shown, which may be
 * Infinity.
 */
export async function framesInChromium(
  page: Page,
  bytes: Uint8Array,
  type: string,
): Promise<{ frames: ShownFrame[]; plays: number }> {
  const { frames, repetitions } = (await page.evaluate(`(async () => {
    const data = Uint8Array.from(atob('${Buffer.from(bytes).toString('base64')}'), (character) => character.charCodeAt(0))
    const decoder = new ImageDecoder({ data, type: '${type}' })
    await decoder.tracks.ready
    await decoder.completed
    const { frameCount, repetitionCount } = decoder.tracks.selectedTrack
    const frames = []
    for (let frameIndex = 0; frameIndex < frameCount; frameIndex++) {
      const { image, complete } = await decoder.decode({ frameIndex, completeFramesOnly: false })
      const pixels = new Uint8Array(image.allocationSize({ format: 'RGBA' }))
      await image.copyTo(pixels, { format: 'RGBA' })
      frames.push([image.codedWidth, image.codedHeight, image.duration / 10_000, complete, pixels.toBase64()])
    }
    return { frames, repetitions: String(repetitionCount) }
  })()`)) as { frames: [number, number, number, boolean, string][]; repetitions: string }
  return {
    frames: frames.map(([width, height, centiseconds, isWhole, pixels]) => ({
      ...{ width, height, centiseconds, isWhole },
      rgba: Buffer.from(pixels, 'base64'),
    })),
    plays: Number(repetitions) + 1,
  }
}

/**
 * RGBA of a file in an image element; undefined if it shows none. Unlike `ImageDecoder`, it shows a first frame that
 * ends early.
 */
export async function imageInChromium(page: Page, bytes: Uint8Array, type: string): Promise<Buffer | undefined> {
  const pixels = (await page.evaluate(`new Promise((done) => {
    const image = new Image()
    image.onload = () => {
      const [width, height] = [image.naturalWidth, image.naturalHeight]
      const context = new OffscreenCanvas(width, height).getContext('2d')
      context.drawImage(image, 0, 0)
      done(new Uint8Array(context.getImageData(0, 0, width, height).data.buffer).toBase64())
    }
    image.onerror = () => done(null)
    image.src = 'data:${type};base64,${Buffer.from(bytes).toString('base64')}'
  })`)) as string | null
  return pixels === null ? undefined : Buffer.from(pixels, 'base64')
}
