// Files of pages below /ui: their styles and scripts, and the operator's logo. They exist while hosted pages are
// disabled too: mail links and long redirects have pages.
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { type Assets, assetType, openAssets } from '@services/common/pages/assets'
import { KIT_FILES } from '@services/common/pages/document'
import { serveAssets } from '@services/common/pages/serve-assets'
import type { FastifyPluginAsync } from 'fastify'
import type { Config } from '../../config.ts'
import type { Deps } from '../../deps.ts'
import { brandCss } from './brand.ts'

export const ASSETS_PATH = '/ui/assets/'
export const LOGO_PATH = '/ui/logo'

const opened = new WeakMap<Config['pages'], Assets>()

/** Files by name: those of the kit and of assets/, and `brand.css`. */
export function pageAssets({ pages }: Pick<Config, 'pages'>): Assets {
  const known = opened.get(pages)
  if (known) return known
  const places = [KIT_FILES, new URL('assets/', import.meta.url)]
  const assets = openAssets(places, { 'brand.css': () => brandCss(pages.color) })
  opened.set(pages, assets)
  return assets
}

export const pageFileRoutes: FastifyPluginAsync<{ deps: Pick<Deps, 'config' | 'egress' | 'log' | 'now'> }> = async (
  app,
  { deps },
) => {
  serveAssets(app, ASSETS_PATH, pageAssets(deps.config))
  const { logo } = deps.config.pages
  if (logo === undefined) return
  const findLogo = keepLogo(deps, logo)
  app.get(LOGO_PATH, { schema: { hide: true }, logLevel: 'silent' }, async (_request, reply) => {
    const found = await findLogo()
    if (!found) return reply.callNotFound()
    return reply.header('cache-control', 'public, max-age=3600').type(found.type).send(found.body)
  })
}

interface Logo {
  body: Buffer
  type: string
}

const LOGO_BOUNDS = { timeoutMs: 5_000, maxBytes: 512 * 1024 }

/** A logo is loaded once, for all who wait for it; after a failure a minute passes before the next attempt. */
const RETRY_MS = 60_000

function keepLogo({ egress, log, now }: Pick<Deps, 'egress' | 'log' | 'now'>, source: string) {
  let logo: Promise<Logo | undefined> | undefined
  let failedAt: number | undefined
  const load = async (): Promise<Logo> => {
    if (!/^https:/i.test(source)) {
      return { body: await readFile(source), type: assetType(basename(source)) as string }
    }
    const answer = await egress.fetch(source, {}, LOGO_BOUNDS)
    const type = (answer.headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
    if (answer.status !== 200 || !/^image\/(svg\+xml|png|jpeg|webp)$/.test(type)) {
      throw new Error(`the address of the logo answers ${answer.status} ${type.slice(0, 50)}`)
    }
    return { body: Buffer.from(await answer.arrayBuffer()), type }
  }
  return (): Promise<Logo | undefined> => {
    if (failedAt !== undefined && now().getTime() - failedAt >= RETRY_MS) logo = failedAt = undefined
    logo ??= load().catch((err: unknown) => {
      failedAt = now().getTime()
      log.warn({ err }, 'logo of pages not loaded')
      return undefined
    })
    return logo
  }
}
