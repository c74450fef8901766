import { boolean, oneOf, text, type Values, type Variables } from '@services/common/config/variables'
import { LOG_LEVELS } from '@services/common/telemetry/logger'
import { metricsVariables, telemetrySettings } from '@services/common/telemetry/settings'

export const logVariables = {
  LOG_LEVEL: oneOf(LOG_LEVELS, 'Least severe level that is logged.', { default: 'info' }),
  LOG_FILE: text('File that log lines are appended to instead of standard output.'),
  TRACING_ENABLED: boolean('Export traces, as configured by the `OTEL_*` variables.', { default: 'false' }),
  ...metricsVariables('9101'),
} satisfies Variables

export const logSettings = (values: Values<typeof logVariables>) => ({
  log: { level: values.LOG_LEVEL, file: values.LOG_FILE },
  telemetry: telemetrySettings(values),
})
