// Variables of operation: database, log and audit, telemetry, and inherited ones without effect.
import { boolean, duration, oneOf, text, type Values, type Variables } from '@services/common/config/variables'
import { databaseVariables as commonVariables } from '@services/common/database/settings'
import { LOG_LEVELS } from '@services/common/telemetry/logger'
import { metricsVariables } from '@services/common/telemetry/settings'

export const databaseVariables = {
  ...commonVariables({
    poolSize: { meaning: 'Maximum connections per process; 0: no limit.', default: '0' },
    exampleTable: 'acme_users',
  }),
  DB_DRIVER: oneOf(['postgres'], 'Database driver; only PostgreSQL is supported.', { default: 'postgres' }),
} satisfies Variables

export const logVariables = {
  LOG_LEVEL: oneOf(LOG_LEVELS, 'Least severe level to log.', { default: 'info' }),
  LOG_FILE: text('File to append log lines to; standard output when unset.'),
  AUDIT_LOG_DISABLE_POSTGRES: boolean('Write audit events to the log only, not to the database.', { default: 'false' }),
  AUDIT_KEEP: duration(
    'Retention of audit entries in the database, a day at least; unset: forever, but refused sign-ins 90 days.',
    {
      positive: true,
      aliases: ['AUTH_AUDIT_LOG_KEEP'],
    },
  ),
  AUDIT_PII_RETENTION: duration(
    'Time after the deletion of a user until audit entries lose its personal data, a day at least; unset: never.',
    { positive: true },
  ),
} satisfies Variables

/** A mistyped unit would delete the log of years, or what it says of persons. */
export function auditProblems({ AUDIT_KEEP: keep, AUDIT_PII_RETENTION: pii }: Values<typeof logVariables>): string[] {
  const isLate = keep !== undefined && pii !== undefined && pii >= keep
  return [
    ...(keep !== undefined && keep < 86_400 ? ['AUTH_AUDIT_KEEP must be at least 24h'] : []),
    ...(pii !== undefined && pii < 86_400 ? ['AUTH_AUDIT_PII_RETENTION must be at least 24h'] : []),
    ...(isLate
      ? ['AUTH_AUDIT_PII_RETENTION must be shorter than AUTH_AUDIT_KEEP: no entry would be left to erase']
      : []),
  ]
}

export const telemetryVariables = {
  TRACING_ENABLED: boolean('Export traces.', { default: 'false' }),
  TRACING_EXPORTER: oneOf(['opentelemetry'], 'Exporter of traces, configured by the `OTEL_*` variables.', {
    default: 'opentelemetry',
  }),
  ...metricsVariables('9100'),
} satisfies Variables

export const inheritedVariables = {
  OPERATOR_TOKEN: text('Inherited, without effect.', { secret: true }),
  API_ENDPOINT: text('Inherited, without effect.'),
} satisfies Variables

export const inheritedWarnings = (values: Values<typeof inheritedVariables>): string[] =>
  (['OPERATOR_TOKEN', 'API_ENDPOINT'] as const)
    .filter((name) => values[name] !== undefined)
    .map((name) => `AUTH_${name} is inherited and has no effect`)
