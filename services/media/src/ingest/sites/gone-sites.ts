import { apiError } from '../../errors.ts'
import { defineSite, type Site } from './site.ts'

/** A site that has shut down: refused without a request. */
const goneSite = (name: string, host: string, ended: string): Site => ({
  ...defineSite<string>({
    name,
    hosts: [host],
    read: ({ pathname }) => (pathname === '/' ? undefined : pathname),
    find: async () => {
      throw apiError('site_gone', { details: { site: name, ended } })
    },
  }),
  isGone: true,
})

export const gfycat = goneSite('gfycat', 'gfycat.com', '2023-09-01')
export const vine = goneSite('vine', 'vine.co', '2017-01-17')
