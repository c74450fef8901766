// /ui/provider: begins a sign-in at a provider, which leads back to /ui/arrive.
import type { Page } from '../../http/hosted/answer-pages.ts'
import { toApplication } from '../../http/hosted/flow.ts'

export const providerPage: Page = {
  path: '/ui/provider',
  hasEffect: true,
  get(visit) {
    // The operator's own target (EXTERNAL_REDIRECT_URL) replaces any: the application continues there by itself.
    const isOwnTarget = visit.deps.config.external.redirectUrl !== undefined
    const parameters = isOwnTarget ? toApplication(visit.flow) : visit.arrival()
    const { provider = '' } = visit.query
    return visit.leave(visit.apiAddress(`/authorize?${new URLSearchParams({ provider, ...parameters })}`))
  },
}
