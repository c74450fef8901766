import { boolean, duration, oneOf, text, type Values, type Variables } from '@services/common/config'
import { LOG_LEVELS } from '@services/common/logger'

export const logVariables = {
  LOG_LEVEL: oneOf(LOG_LEVELS, 'Least severe level to log.', { default: 'info' }),
  LOG_FILE: text('File to append log lines to; standard output when unset.'),
  AUDIT_LOG_DISABLE_POSTGRES: boolean('Write audit events to the log only, not to the database.', { default: 'false' }),
  AUDIT_LOG_KEEP: duration(
    'Retention of audit entries in the database; unset: forever, but refused sign-ins 90 days.',
    {
      positive: true,
    },
  ),
} satisfies Variables

export const logSettings = (values: Values<typeof logVariables>) => ({ level: values.LOG_LEVEL, file: values.LOG_FILE })
