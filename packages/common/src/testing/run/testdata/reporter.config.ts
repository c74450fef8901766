import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['*.sample.ts'],
    setupFiles: process.env.TEST_SHAKEN ? [`${import.meta.dirname}/../disturb.ts`] : [],
    reporters: [`${import.meta.dirname}/../run-reporter.ts`],
    tags: [
      { name: 'absent', description: 'a program is missing: install it', skip: true },
      { name: 'root', description: 'only root can do this', skip: true },
    ],
  },
})
