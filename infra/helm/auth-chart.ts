import { variables } from '../../services/auth/src/config.ts'
import type { ChartFacts } from './chart-facts.ts'

export const chart: ChartFacts = {
  name: 'auth',
  prefix: 'AUTH_',
  variables,
  decided: [
    ...['PORT', 'WORKERS_ENABLED', 'MIGRATE_ON_START', 'OTEL_EXPORTER_PROMETHEUS_PORT'],
    ...['CONSOLE_ENABLED', 'CONSOLE_PORT'],
  ],
  madeUp: {
    plain:
      '^AUTH_EXTERNAL_OIDC_[A-Z][A-Z0-9_]*_(ENABLED|CLIENT_ID|REDIRECT_URI|URL|EMAIL_OPTIONAL|SKIP_NONCE_CHECK|LINKING|ISSUER|SCOPES|CLAIMS|CLIENT_AUTHENTICATION)$',
    secret: '^AUTH_EXTERNAL_OIDC_[A-Z][A-Z0-9_]*_SECRET$',
  },
}
