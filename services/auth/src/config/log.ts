import { boolean, duration, oneOf, text, type Values, type Variables } from '@services/common/config'
import { LOG_LEVELS } from '@services/common/logger'

export const logVariables = {
  LOG_LEVEL: oneOf(LOG_LEVELS, 'Least severe level that is logged.', { default: 'info' }),
  LOG_FILE: text('File that log lines are appended to instead of standard output.'),
  AUDIT_LOG_DISABLE_POSTGRES: boolean('Write audit events to the log only, not to the database.', { default: 'false' }),
  AUDIT_LOG_KEEP: duration('How long audit entries stay in the database; unset: for ever, refused sign-ins 90 days.', {
    positive: true,
  }),
} satisfies Variables

export const logSettings = (values: Values<typeof logVariables>) => ({
  level: values.LOG_LEVEL,
  file: values.LOG_FILE,
})
