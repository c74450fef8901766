// Providers beyond the specification's eighteen: names in the types of the public client, and where new ones go.
import type { FurtherProvider } from '../../../config/external-providers.ts'
import type { Provider } from '../../oauth/provider.ts'
import { fly } from './fly.ts'
import { kakao } from './kakao.ts'
import { linkedinOidc } from './linkedin-oidc.ts'
import { slackOidc } from './slack-oidc.ts'
import { vercelMarketplace } from './vercel-marketplace.ts'
import { x } from './x.ts'
import { zoom } from './zoom.ts'

export const FURTHER: Record<FurtherProvider, Provider> = {
  fly,
  kakao,
  linkedin_oidc: linkedinOidc,
  slack_oidc: slackOidc,
  vercel_marketplace: vercelMarketplace,
  x,
  zoom,
}
