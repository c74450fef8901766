// The console for administrators, and the numbers that only it shows.
import { boolean, type Values, type Variables } from '@services/common/config/variables'

export const consoleVariables = {
  CONSOLE_ENABLED: boolean('Serve the console for administrators at `/console`, and count what its overview shows.', {
    default: 'false',
  }),
} satisfies Variables

export const consoleSettings = (values: Values<typeof consoleVariables>) => ({ enabled: values.CONSOLE_ENABLED })
