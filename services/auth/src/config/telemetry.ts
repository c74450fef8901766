import { boolean, oneOf, type Variables } from '@services/common/config'
import { metricsVariables } from '@services/common/telemetry-settings'

export const telemetryVariables = {
  TRACING_ENABLED: boolean('Export traces.', { default: 'false' }),
  TRACING_EXPORTER: oneOf(['opentelemetry'], 'Exporter of traces, configured by the `OTEL_*` variables.', {
    default: 'opentelemetry',
  }),
  ...metricsVariables('9100'),
} satisfies Variables
