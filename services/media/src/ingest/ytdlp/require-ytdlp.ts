import { access, constants } from 'node:fs/promises'
import { ConfigError } from '@services/common/config'
import type { Config } from '../../config.ts'

/** Throws ConfigError where yt-dlp or its cookies are set and not to be used. */
export async function requireYtdlp({ path, cookies }: Config['ytdlp']): Promise<void> {
  const refuse = (problem: string) => (cause: NodeJS.ErrnoException) => {
    throw new ConfigError([`${problem} (${cause.code})`], cause)
  }
  if (path) await access(path, constants.X_OK).catch(refuse(`MEDIA_YTDLP_PATH: ${path} cannot be run`))
  if (path && cookies)
    await access(cookies, constants.R_OK).catch(refuse(`MEDIA_YTDLP_COOKIES: ${cookies} cannot be read`))
}
