import { defineConfig } from 'vitest/config'
import { testOrder } from '../test-order.ts'

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['*.sample.ts'],
    setupFiles: process.env.TEST_SHAKEN ? [`${import.meta.dirname}/../disturb.ts`] : [],
    sequence: process.env.TEST_SHAKEN ? testOrder() : {},
    reporters: [`${import.meta.dirname}/../run-reporter.ts`],
    tags: [
      { name: 'absent', description: 'a program is missing: install it', skip: true },
      { name: 'root', description: 'only root can do this', skip: true },
    ],
  },
})
