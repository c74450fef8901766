// Files that pages load: styles, scripts, pictures. Each is read at its first use. An address ends in `?v=` and a hash
// of the text, so that a browser may keep the file for ever. Any hash, or none, answers the current file: a page of
// before an upgrade works after it. A module asks for its imports by `?is=`, which answers that very version or 404:
// so modules of two versions are never mixed. Pages: document.ts; routes: serve-assets.ts; tests: pages.test.ts.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, extname, posix, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface Asset {
  body: string | Buffer
  type: string
  /** Hash of the text, and for a module of the modules that it imports. */
  version: string
}

export interface Assets {
  find(name: string): Asset | undefined
  /** Returns the name with its version, such as `kit.css?v=0123456789ab`. Throws for an unknown name. */
  address(name: string): string
}

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.webp': 'image/webp',
}

/** Media type of a file name; undefined for files that pages do not load. */
export const assetType = (name: string): string | undefined => TYPES[extname(name).toLowerCase()]

/** Path of a module in an import: `./steps.js`, `../lit-html.js`. */
const IMPORTED = /(?<=(?:from|import) ?')\.{1,2}\/[\w./-]+\.js(?=')/g

/**
 * Opens files by name. A place is a file, or a folder (a slash at the end) with all below it; a later place wins.
 * `made` are texts that no file holds.
 */
export function openAssets(places: readonly URL[], made: Readonly<Record<string, () => string>> = {}): Assets {
  let listed: Map<string, string> | undefined
  const kept = new Map<string, Asset>()
  const pathOf = (name: string) => {
    listed ??= new Map(places.flatMap(filesAt))
    return listed.get(name)
  }
  const textOf = (name: string): string | Buffer | undefined => {
    if (Object.hasOwn(made, name)) return made[name]?.()
    const path = pathOf(name)
    if (path === undefined) return undefined
    if (extname(name) !== '.js') return readFileSync(path)
    // An import without its version would be taken from a cache of before.
    return readFileSync(path, 'utf8').replace(IMPORTED, (imported) => {
      const target = posix.join(posix.dirname(name), imported)
      return `${imported}?is=${required(target).version}`
    })
  }
  const find = (name: string): Asset | undefined => {
    const known = kept.get(name)
    if (known) return known
    const type = assetType(name)
    const body = type === undefined ? undefined : textOf(name)
    if (type === undefined || body === undefined) return undefined
    const asset = { body, type, version: createHash('sha256').update(body).digest('hex').slice(0, 12) }
    kept.set(name, asset)
    return asset
  }
  const required = (name: string): Asset => {
    const asset = find(name)
    if (!asset) throw new Error(`no asset ${name}`)
    return asset
  }
  return { find, address: (name) => `${name}?v=${required(name).version}` }
}

/** Lists the files of a place by the names of their addresses. */
function filesAt(place: URL): [name: string, path: string][] {
  const path = fileURLToPath(place)
  if (!place.pathname.endsWith('/')) return [[basename(path), path]]
  return readdirSync(path, { recursive: true, encoding: 'utf8' }).map((name) => [
    name.replaceAll(sep, '/'),
    `${path}${name}`,
  ])
}
